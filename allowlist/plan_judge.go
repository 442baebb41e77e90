// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
)

// judging is one run of Plan. Each edit gets one decision: the first failure in a fixed order.
type judging struct {
	policy    *treePolicy
	view      *view
	changes   []change
	decisions []Decision // one for each change
	set       []Decision // denials of the whole set
}

func (j *judging) all() error {
	if len(j.changes) == 0 {
		j.set = append(j.set, Decision{Code: ErrPatchMalformed, Detail: "the set is empty", Hint: "Send at least one edit."})
		return nil
	}
	others := compareEdits(j.changes)
	j.decisions = make([]Decision, len(j.changes))
	for i := range j.changes {
		d, err := j.one(&j.changes[i], others[i])
		if err != nil {
			return fmt.Errorf("%+q: %w", j.changes[i].Path, err)
		}
		j.decisions[i] = d
	}
	j.set = overLimits(j.changes, j.policy.limits())
	return nil
}

// one judges one edit. The error is a fault of the system, never a verdict.
func (j *judging) one(c *change, others *refusal) (Decision, error) {
	d, scope := j.policy.judge(c.Op, c.Path)
	d.Op, d.Path = c.Op, c.Path
	if !d.Allowed {
		return d, nil
	}
	if others != nil {
		return deny(d, others), nil
	}
	if r := judgeContent(c, min(j.policy.limits().FileBytes, j.view.t.opts.MaxRead)); r != nil {
		return deny(d, r), nil
	}
	var err error
	c.old, c.meta, err = j.view.target(c.Op, c.Path)
	if err == nil {
		c.read = c.Op != Create
		if j.policy.file.same(c.meta) { // under whatever name: a link on the way, a mount
			return deny(d, &refusal{ErrProtected, "it is the policy file"}), nil
		}
		err = judgeBase(c)
	}
	if r, ok := asRefusal(err); ok {
		return deny(d, r), nil
	}
	if err != nil {
		return Decision{}, err
	}
	if code, rule, detail := scope.check(c.Path, c.old, c.Content, c.Op == Create); code != "" {
		d = deny(d, &refusal{code, detail})
		d.Rule = rule
	}
	return d, nil
}

// deny turns an allowance into a denial. The surface rule did not decide it, so it is not named.
func deny(d Decision, r *refusal) Decision {
	return Decision{Op: d.Op, Path: d.Path, Code: r.code, Detail: r.detail, Hint: hints[r.code]}
}

// hints say what a generator can do about a denial that the tree or the set gave.
var hints = map[Code]string{
	ErrConflict:         "Read the file again, make the edit against what is there now, and name each file once.",
	ErrCaseCollision:    "Use the spelling that is there, or a name that differs in more than case.",
	ErrTooLarge:         "Send a smaller change.",
	ErrSymlink:          "Edit the file that the link leads to by its own name, if the policy allows that.",
	ErrHardLink:         "A file with several names cannot be edited.",
	ErrFileType:         "Only regular text files below regular directories can be edited.",
	ErrMode:             "Ask the operator to make the file an ordinary writable one.",
	ErrNestedRepository: "Files of a nested repository cannot be edited.",
	ErrOutsideRegion:    "Change only what the rule opens; leave every other byte as it is.",
	ErrDirective:        "Leave the directive out.",
}

func judgeContent(c *change, limit int64) *refusal {
	if int64(len(c.Content)) > limit {
		return &refusal{ErrTooLarge, fmt.Sprintf("%d bytes, the limit of one file is %d", len(c.Content), limit)}
	}
	if i := bytes.IndexByte(c.Content, 0); i >= 0 {
		return &refusal{ErrFileType, fmt.Sprintf("the new content has a NUL byte at offset %d", i)}
	}
	return nil
}

// judgeBase asks whether the edit was made against what is there. A Create may say "nothing" or "the empty file".
func judgeBase(c *change) error {
	switch {
	case c.Op == Create:
		if c.Base != (Digest{}) && c.Base != Sum(nil) {
			return &refusal{ErrConflict, "the edit creates a file, but was made against one"}
		}
	case c.Base == Digest{}:
		return &refusal{ErrConflict, "the edit does not say which content it was made against"}
	case c.Base != Sum(c.old):
		return &refusal{ErrConflict, "the file is not the one that the edit was made against"}
	}
	return nil
}
