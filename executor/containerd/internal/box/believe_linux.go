// SPDX-License-Identifier: Apache-2.0

package box

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// clean makes a text of the box fit for an error message.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// causes are what the reasons of the supervisor mean.
var causes = map[stream.Killed]executor.Cause{
	stream.KilledNot: executor.CauseUnknown, stream.KilledWall: executor.CauseWallTimeout,
	stream.KilledCPU: executor.CauseCPUTimeout, stream.KilledOutput: executor.CauseOutputLimit,
	stream.KilledCancel: executor.CauseCancelled,
}

// believe takes a result over as far as it agrees with itself and with what was seen here.
func (r *run) believe(m *stream.Result) error {
	doubt := func(format string, args ...any) error {
		return fmt.Errorf("%w: result: %s", stream.ErrProtocol, fmt.Sprintf(format, args...))
	}
	if m.Failed.Kind != 0 || r.phase == starting {
		if m.Failed.Kind != supervise.Failed || r.phase != starting || m.Failed.Errno == 0 {
			return doubt("a start that failed after it succeeded, or for no reason")
		}
		r.end.Failed = &m.Failed
		return nil
	}
	status := unix.WaitStatus(m.Leader.Status)
	cause, known := causes[m.Killed]
	switch {
	case m.Leader.Kind != supervise.Ended || m.Tree.Kind != supervise.Empty:
		return doubt("no end")
	case !status.Exited() && !status.Signaled():
		return doubt("wait status %#x", m.Leader.Status)
	case !known:
		return doubt("reason %d", m.Killed)
	case m.Killed == stream.KilledCancel && !r.wasCancelled():
		return doubt("cancelled by nobody")
	case m.Wall < 0 || m.CPU < 0 || m.Tasks < 0 || m.Threads < 0 || m.Own < 0:
		return doubt("a negative figure")
	}
	for i, c := range r.captured {
		if m.Totals[i] < c.total || m.Totals[i] > c.total && c.total <= c.limit {
			return doubt("%d bytes of output, of which %d came", m.Totals[i], c.total)
		}
		c.total, c.complete = m.Totals[i], true
	}
	for _, v := range m.Volumes {
		if !slices.Contains(r.s.opened.Volumes, v.Path) || v.Full < 0 || v.Used < 0 || v.InodesUsed < 0 {
			return doubt("volume %s", clean(v.Path))
		}
	}
	r.end.Leader, r.end.Tree, r.end.Host, r.end.Volumes = &m.Leader, &m.Tree, cause, m.Volumes
	r.end.CPU, r.end.Tasks, r.end.Threads, r.end.Own = m.CPU, m.Tasks, m.Threads, m.Own
	// The duration is the supervisor's, who saw both ends at once. The payload did not run before it was sent.
	r.end.Ended = time.Now()
	r.end.Started = r.end.Ended.Add(-min(m.Wall, r.end.Ended.Sub(r.began)))
	return nil
}
