// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// AppendJSON appends the record as one JSON object on one line. It does not allocate for the records of an iteration,
// if b has room. An operation or a reason that is not defined is an error.
func (r *Record) AppendJSON(b []byte) ([]byte, error) {
	if r.Op == 0 || r.Op >= opEnd || r.Reason != 0 && !r.Reason.known() {
		return nil, fmt.Errorf("runaway: a record of %v with %v cannot be written", r.Op, r.Reason)
	}
	b = append(b, `{"op":"`...)
	b = append(b, r.Op.String()...)
	b = append(b, `","at":"`...)
	b = r.At.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendInt(b, "active", int64(r.Active))
	b = appendText(b, "scope", r.Scope)
	b = appendInt(b, "n", int64(r.Iteration))
	b = appendInt(b, "parent", int64(r.Parent))
	b = r.Usage.appendJSON(b)
	if r.Kind != Unknown {
		b = append(b, `,"kind":"`...)
		b = append(b, kindNames[r.Kind.classified()]...)
		b = append(b, '"')
	}
	if r.Scored {
		b = append(b, `,"scored":true`...)
		if !math.IsNaN(r.Score) && !math.IsInf(r.Score, 0) {
			b = append(b, `,"score":`...)
			b = strconv.AppendFloat(b, r.Score, 'g', -1, 64)
		}
	}
	if !r.Head.IsZero() {
		b = append(b, `,"head":"`...)
		b = hex.AppendEncode(b, r.Head[:])
		b = append(b, '"')
	}
	b = appendText(b, "class", r.Class)
	if r.Reason != 0 {
		b = append(b, `,"reason":"`...)
		b = append(b, r.Reason.String()...)
		b = append(b, '"')
	}
	b = appendText(b, "limit", r.Limit)
	b = appendText(b, "value", r.Value)
	if r.Drain {
		b = append(b, `,"drain":true`...)
	}
	b = appendText(b, "by", r.By)
	b = appendText(b, "detail", r.Detail)
	if r.Limits != nil {
		limits, err := json.Marshal(r.Limits)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"limits":`...), limits...)
	}
	if r.Snapshot != nil {
		b = append(append(b, `,"snapshot":`...), r.Snapshot...)
	}
	return append(b, '}'), nil
}

func (u *Usage) appendJSON(b []byte) []byte {
	if *u == (Usage{}) {
		return b
	}
	b = append(b, `,"usage":{`...)
	start := len(b)
	b = appendInt(b, "tokens", u.Tokens)
	b = appendInt(b, "cost", int64(u.Cost))
	b = appendInt(b, "calls", u.Calls)
	b = appendInt(b, "cpu", int64(u.CPU))
	if u.Unpriced {
		b = append(b, `,"unpriced":true`...)
	}
	b = append(b[:start], b[start+1:]...) // the first comma
	return append(b, '}')
}

func appendInt(b []byte, key string, v int64) []byte {
	if v == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":`...)
	return strconv.AppendInt(b, v, 10)
}

func appendText(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":`...)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string cannot fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// MarshalJSON is AppendJSON.
func (r Record) MarshalJSON() ([]byte, error) {
	return r.AppendJSON(nil)
}

// UnmarshalJSON reads what AppendJSON wrote and refuses fields that it does not know: a record of a later version may
// mean more than this version would do.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record // without this method
	var wire struct {
		plain
		Score *float64 `json:"score"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire); err != nil {
		return fmt.Errorf("runaway: record: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("runaway: record: more than one JSON value")
	}
	*r = Record(wire.plain)
	r.Score = math.NaN()
	if wire.Score != nil {
		r.Score = *wire.Score
	}
	return nil
}
