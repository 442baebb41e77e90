// SPDX-License-Identifier: Apache-2.0

package runaway

import "time"

// watch is the governor's own goroutine: it looks at the files and at the clocks when nobody else does. A step that
// hangs is therefore noticed, although it asks nothing.
func (r *run) watch() {
	defer close(r.watched)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-r.wake:
		case <-timer.C:
		}
		seen := r.files.look()
		r.lock()
		if r.closed {
			r.unlock()
			return
		}
		r.see(&seen)
		r.lookAtWall()
		next := r.patrol()
		r.quiet = r.now + next
		r.unlock()
		// An active clock that stands still makes nothing due, and what is due already was dealt with.
		timer.Reset(max(next, time.Millisecond))
	}
}

// rouse makes the watcher look again, because something may be due sooner than it knows.
func (r *run) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// patrol enforces everything that depends on time alone, and says when to come again.
func (r *run) patrol() time.Duration {
	r.expire()
	next := tick
	for _, s := range r.Scopes {
		if !s.attached() {
			continue
		}
		if f, ok := r.overdue(s); ok {
			r.halt(s, f, false, "", nil)
		}
		r.warn(s)
		if !s.aborted {
			next = min(next, r.untilOverdue(s))
		}
		for _, sl := range s.Open {
			if sl.waiting == 0 {
				next = min(next, sl.due-r.now)
			}
		}
	}
	late := r.dirty && r.now-r.dirtySince >= tick
	if r.broken == nil && (late || r.mark-r.Active >= heartbeat) {
		_ = r.commit(&Record{Op: OpTick}, true) // if it failed, the run is stopped
	}
	return next
}
