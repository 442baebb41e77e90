// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Terminal prints lines, and on a terminal one more line below them that says what is going on now. It is safe for
// concurrent use.
type Terminal struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool
	status func(elapsed time.Duration) string
	since  time.Time
	shown  bool
	stop   chan struct{}
	done   sync.WaitGroup
}

// NewTerminal prints to w. The status line exists only if w is a terminal.
func NewTerminal(w io.Writer) *Terminal {
	t := &Terminal{w: w, stop: make(chan struct{})}
	if f, ok := w.(*os.File); ok {
		fi, err := f.Stat()
		t.live = err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	if t.live {
		t.done.Go(t.tick)
	}
	return t
}

func (t *Terminal) tick() {
	for {
		select {
		case <-t.stop:
			return
		case <-time.After(200 * time.Millisecond):
			t.mu.Lock()
			t.draw()
			t.mu.Unlock()
		}
	}
}

const erase = "\r\x1b[K"

// draw shows the status. The caller has the lock.
func (t *Terminal) draw() {
	if t.status == nil || !t.live {
		return
	}
	fmt.Fprint(t.w, erase, Clean(t.status(time.Since(t.since)), 110))
	t.shown = true
}

func (t *Terminal) clear() {
	if t.shown {
		fmt.Fprint(t.w, erase)
		t.shown = false
	}
}

// Status says what the last line shows from now on; nil shows nothing.
func (t *Terminal) Status(f func(elapsed time.Duration) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.since = f, time.Now()
	t.clear()
	t.draw()
}

// Println prints one line. Control characters are shown and not obeyed.
func (t *Terminal) Println(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	fmt.Fprintln(t.w, Clean(line, 1<<16))
	t.draw()
}

// Print prints text of the host's own as it is.
func (t *Terminal) Print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	fmt.Fprint(t.w, text)
	t.draw()
}

// Close removes the status line.
func (t *Terminal) Close() {
	if t.live {
		close(t.stop)
		t.done.Wait()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

// Clean makes one harmless line of a text, of at most so many characters.
func Clean(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > most {
			return b.String()[:b.Len()] + "…"
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError || !unicode.IsPrint(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
