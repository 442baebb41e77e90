// SPDX-License-Identifier: Apache-2.0

package runaway

import "time"

// compact is a record of an iteration in two cache lines and without pointers. A Record has three times as many bytes;
// to write and to scan them would cost a store in memory more than all the accounting.
type compact struct {
	active, sec int64
	iteration   int
	used        amounts
	score       float64
	head        Fingerprint
	nsec        int32
	op          Op
	kind        Kind
	unpriced    bool
	scored      bool
}

// pack makes a record compact. False: it has a field for which there is no place.
func (c *compact) pack(r *Record) bool {
	if r.Scope != "" || r.Parent != 0 || r.Class != "" || r.Reason != 0 || r.Limit != "" || r.Value != "" || r.Drain ||
		r.By != "" || r.Detail != "" || r.Limits != nil || r.Snapshot != nil {
		return false
	}
	c.op, c.iteration = r.Op, r.Iteration
	c.sec, c.nsec, c.active = r.At.Unix(), int32(r.At.Nanosecond()), int64(r.Active)
	c.used, c.unpriced = r.Usage.amounts(), r.Usage.Unpriced
	c.kind, c.scored, c.score = r.Kind, r.Scored, r.Score
	c.head = r.Head
	return true
}

// record is the record again, with its time in UTC.
func (c *compact) record() *Record {
	r := &Record{
		Op: c.op, At: time.Unix(c.sec, int64(c.nsec)).UTC(), Active: time.Duration(c.active), Iteration: c.iteration,
		Usage: c.used.usage(), Kind: c.kind, Scored: c.scored, Score: c.score, Head: c.head,
	}
	r.Usage.Unpriced = c.unpriced
	return r
}
