// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/isolation"
)

// entry is one line of the history.
type entry struct {
	variant.Past
	Took     time.Duration `json:"took"`
	Stages   stages        `json:"stages"`
	Screened int           `json:"screened,omitempty"` // candidates that the host has interpreted so far
}

// stages says in milliseconds where the time went, by stage.
type stages map[string]float64

func stagesOf(t isolation.Timing) stages {
	s := stages{}
	for stage, took := range t.All() {
		s[stage.String()] = float64(took.Microseconds()/100) / 10
	}
	return s
}

// history is the file that a generator is told from, and the curve drawn from. It decides nothing: what was kept, and
// how many variants there may be, is in the journals of the boundary and the governor.
type history struct {
	all  []entry
	file *os.File
}

// openHistory reads what there is. A last line that a crash cut off is taken away.
func openHistory(path string) (*history, error) {
	h := &history{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	lines := bufio.NewScanner(bytes.NewReader(data[:whole]))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		h.all = append(h.all, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if h.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if err = h.file.Truncate(int64(whole)); err == nil {
		_, err = h.file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return nil, errors.Join(err, h.file.Close())
	}
	return h, nil
}

func (h *history) add(e entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	h.all = append(h.all, e)
	return err
}

func (h *history) last(n int) []variant.Past {
	past := []variant.Past{}
	for _, e := range h.all[max(0, len(h.all)-n):] {
		past = append(past, e.Past)
	}
	return past
}

func (h *history) accepted() (n int) {
	for _, e := range h.all {
		if e.Accepted {
			n++
		}
	}
	return n
}

// screened is how many candidates were interpreted in the whole run.
func (h *history) screened() int {
	if len(h.all) == 0 {
		return 0
	}
	return h.all[len(h.all)-1].Screened
}

func (h *history) close() { _ = h.file.Close() } // each line is in the file already

// tested is how many came as far as a run: others were refused, or nothing usable was proposed.
func (h *history) tested() (n int) {
	for _, e := range h.all {
		if _, ran := e.Stages[isolation.StageRun.String()]; ran {
			n++
		}
	}
	return n
}
