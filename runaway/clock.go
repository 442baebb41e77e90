// SPDX-License-Identifier: Apache-2.0

package runaway

import "time"

// How often the governor looks at files and clocks without being asked, and how much active time a crash can make it
// forget. A session that was not closed is charged that much when the run is opened again, or the time since its last
// record if that is less, so that crashes make no time free.
const (
	tick      = time.Second
	heartbeat = time.Minute
	amnesia   = heartbeat + tick
)

// clock tells the time of a session. Reading the monotonic clock alone costs half of reading both, so the wall clock is
// read once a second and counted on from there.
type clock struct {
	base time.Time     // when the session began
	now  time.Duration // since then, when the lock was taken
	mark time.Duration // active time of the run then

	wallBase time.Time     // the wall clock, UTC
	wallAt   time.Duration // when it was read

	total   time.Duration // active time up to since
	since   time.Duration
	running bool
}

// begin starts the clock with the active time of earlier sessions.
func (c *clock) begin(now time.Time, active time.Duration) {
	*c = clock{base: now, wallBase: now.Round(0).UTC(), total: active, mark: active, running: true}
}

// look reads the monotonic clock.
func (c *clock) look() {
	c.now = time.Since(c.base)
	c.mark = c.total
	if c.running {
		c.mark += c.now - c.since
	}
}

// lookAtWall reads the wall clock.
func (c *clock) lookAtWall() { c.wallBase, c.wallAt = time.Now().Round(0).UTC(), c.now }

// wall is the time of the wall clock; after it was set, for at most a second what it would be otherwise.
func (c *clock) wall() time.Time { return c.wallBase.Add(c.now - c.wallAt) }

// setRunning starts or stops active time.
func (c *clock) setRunning(running bool) {
	if running != c.running {
		c.total, c.since, c.running = c.mark, c.now, running
	}
}

// unrecorded is the active time to assume between the last record of a session that was not closed and now. A wall
// clock that was set back says nothing about how long that was.
func (l *ledger) unrecorded(now time.Time) time.Duration {
	switch since := now.Sub(l.At); {
	case l.Clean || l.Sessions == 0:
		return 0
	case since < 0:
		return amnesia
	default:
		return min(amnesia, since)
	}
}

// enforceTime ends iterations that have taken too long, and stops a governor, or one above it, whose time is over. Most
// calls have nothing to do: quiet says until when.
func (r *run) enforceTime(s *scope) {
	if r.now < r.quiet {
		return
	}
	r.expire()
	r.haltOverdue(s)
}

// haltOverdue stops a governor, or one above it, from the run inward.
func (r *run) haltOverdue(s *scope) {
	if s.parent != nil {
		r.haltOverdue(s.parent)
	}
	if f, ok := r.overdue(s); ok {
		r.halt(s, f, false, "", nil)
	}
}

// overdue finds a limit on time that is reached in one governor.
func (r *run) overdue(s *scope) (finding, bool) {
	l := &s.Limits
	switch {
	case !l.Deadline.IsZero() && !r.wall().Before(l.Deadline):
		return finding{ReasonDeadline, "Deadline " + l.Deadline.Format(time.RFC3339), r.wall().Format(time.RFC3339)},
			true
	case l.Wall != NoLimit && s.active(r.mark) >= l.Wall:
		return finding{ReasonWall, "Wall " + l.Wall.String(), s.active(r.mark).String()}, true
	case l.Idle != NoLimit && r.paused(s) == "" && r.mark-s.touched >= l.Idle:
		return finding{ReasonIdle, "Idle " + l.Idle.String(), (r.mark - s.touched).String()}, true
	}
	return finding{}, false
}

// untilOverdue is how long from now overdue will find nothing. Active time may pass or stand still.
func (r *run) untilOverdue(s *scope) time.Duration {
	l, left := &s.Limits, tick
	if !l.Deadline.IsZero() {
		left = min(left, l.Deadline.Sub(r.wall()))
	}
	if l.Wall != NoLimit {
		left = min(left, l.Wall-s.active(r.mark))
	}
	if l.Idle != NoLimit {
		left = min(left, l.Idle-(r.mark-s.touched))
	}
	return left
}

// sooner makes sure that the watcher looks again at that time, or before.
func (r *run) sooner(due time.Duration) {
	if due < r.quiet {
		r.quiet = due
		r.rouse()
	}
}

// retime starts and stops the clock of active time. In a pause it stands still once nothing is at work any more.
func (r *run) retime() {
	if r.filePause == "" && r.root().Paused == "" {
		if !r.running {
			r.setRunning(true)
			r.sooner(r.now)
		}
		return
	}
	busy := false
	for _, s := range r.Scopes {
		for _, sl := range s.Open {
			busy = busy || sl.waiting == 0
		}
	}
	r.setRunning(busy)
}
