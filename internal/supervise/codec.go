// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"

	"github.com/evoseal/containment/internal/wire"
)

// Fields passes every field of the job through a coder.
func (j *Job) Fields(c wire.Coder) {
	wire.Texts(c, &j.Programs)
	wire.Texts(c, &j.Args)
	wire.Texts(c, &j.Env)
	c.Text(&j.Dir)
	wire.Int(c, &j.UID)
	wire.Int(c, &j.GID)
	c.Flag(&j.Reserved)
	wire.Slice(c, &j.Rlimits, func(l *Rlimit) { l.Fields(c) })
	wire.Slice(c, &j.Affinity, c.Word)
	wire.Texts(c, &j.Reachable)
	wire.Bytes(c, &j.Filter)
	c.Flag(&j.Sample)
	wrapped := j.Wrapper != nil
	c.Flag(&wrapped)
	if wrapped {
		if j.Wrapper == nil {
			j.Wrapper = new(Wrapper)
		}
		c.Text(&j.Wrapper.Program)
		wire.Texts(c, &j.Wrapper.Args)
		wire.Int(c, &j.Wrapper.UID)
		wire.Int(c, &j.Wrapper.GID)
	}
	c.Flag(&j.Landlock)
	wire.Int(c, &j.Cgroups)
	c.Flag(&j.Into)
}

// Fields passes every field of the limit through a coder.
func (l *Rlimit) Fields(c wire.Coder) {
	wire.Int(c, &l.Resource)
	c.Word(&l.Soft)
	c.Word(&l.Hard)
}

func (j *Job) encode() []byte {
	w := &wire.Writer{}
	j.Fields(w)
	return w.Bytes()
}

func decodeJob(data []byte) (*Job, error) {
	j, r := new(Job), wire.NewReader(data)
	j.Fields(r)
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("supervise: parameters: %w", err)
	}
	return j, nil
}
