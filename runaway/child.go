// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"fmt"
)

// Child returns a governor for a loop inside the iteration. It has limits of its own, and all it does is also its
// parent's: each of its iterations counts against MaxIterations of every governor above, and what they spend is charged
// to the iteration and to every budget above. What the iteration has reserved is used first. A stop above stops the
// child; a stop of the child does not stop its parent.
//
// The name is one of letters, digits and "-_.", at most 64 bytes. A child with that name in a later iteration, or
// after a restart, is the same one: its counts go on, its stop holds, and limits that are looser than before are
// ErrLimitsLoosened; there is no amendment, but another name is another child that spends from the same parent. The
// child ends with the iteration, or with Close.
//
// The error is a *ConfigError, a *StopError, ErrLost or ErrLimitsLoosened.
func (it *Iteration) Child(ctx context.Context, name string, l Limits) (*Governor, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r, _, err := it.enter((*lookout).look)
	if r != nil {
		defer r.unlock()
	}
	if err != nil {
		return nil, err
	}
	path := name
	if it.scope.Path != "" {
		path = it.scope.Path + "/" + name
	}
	known := r.scope(path)
	if err := r.checkChild(it, name, known, l); err != nil {
		return nil, err
	}
	l = l.withDefaults()
	if stop := it.scope.abortedBy(); stop != nil {
		return nil, stop
	}
	if known != nil {
		if known.Stop != nil {
			return nil, known.Stop
		}
		if fields := l.looser(known.Limits); len(fields) > 0 {
			return nil, fmt.Errorf("%w: child %q: %q; take another name for another child", ErrLimitsLoosened, path,
				fields)
		}
	}
	if known == nil || known.Host != it.n || known.Limits != l {
		// The first Begin makes it durable. A child that never began anything may be forgotten.
		if err := r.commit(&Record{Op: OpChild, Scope: path, Iteration: it.n, Limits: &l}, false); err != nil {
			return nil, err
		}
		r.sooner(r.now)
	}
	return &Governor{run: r, scope: r.scope(path), host: it.n}, nil
}

// checkChild returns everything that is wrong with a child as one error.
func (r *run) checkChild(it *Iteration, name string, known *scope, l Limits) error {
	problems := l.check(r.meter)
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: child %q: %s", ErrInvalidOptions, name, fmt.Sprintf(format,
			args...)))
	}
	if !validName(name, maxChildName) {
		refuse("a name is 1 to %d letters, digits and \"-_.\", and does not begin with a dot", maxChildName)
	}
	depth := 1
	for s := it.scope; s != nil; s, depth = s.parent, depth+1 {
		if s.Limits.MaxDepth < depth {
			refuse("it is %d level(s) below %q, where MaxDepth is %d", depth, s.Path, s.Limits.MaxDepth)
			break
		}
	}
	if known != nil && known.Host != 0 && known.Host != it.n {
		refuse("it works in iteration %d; one child works in one iteration at a time", known.Host)
	}
	if most := r.root().Limits.cap(); known == nil && len(r.Scopes) > most {
		refuse("there are %d children, as many as iterations are allowed", len(r.Scopes)-1)
	}
	if len(problems) == 0 {
		return nil
	}
	return &ConfigError{problems}
}

// The longest names. Both are parts of journal records, and the run's is part of a file name.
const (
	maxRunID     = 128
	maxChildName = 64
)

// validName keeps names fit for files, records and a terminal.
func validName(name string, most int) bool {
	if name == "" || len(name) > most || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
