// SPDX-License-Identifier: Apache-2.0

package hostrun

import "sync"

// users counts the runs that use an executor's descriptors, so that Close does not take them away from under a run: a
// closed descriptor's number may be another file's by then.
type users struct {
	mu     sync.Mutex
	n      int
	closed bool
}

// enter reports whether the executor is open, and counts its caller if so.
func (u *users) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.n++
	return true
}

// leave reports whether the executor was closed meanwhile and its caller was the last one.
func (u *users) leave() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	return u.closed && u.n == 0
}

// close reports whether this call closed the executor and nobody uses it.
func (u *users) close() (idle bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := !u.closed
	u.closed = true
	return first && u.n == 0
}
