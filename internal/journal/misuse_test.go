// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

func TestInvalid(t *testing.T) {
	t.Parallel()
	good := state(t)
	for what, change := range map[string]func(*journal.Config){
		"no name": func(c *journal.Config) { c.Name = "" }, "hidden": func(c *journal.Config) { c.Name = ".x" },
		"path": func(c *journal.Config) { c.Name = "../x" }, "long": func(c *journal.Config) { c.Name = strings.Repeat("x", 201) },
		"no directory": func(c *journal.Config) { c.Dir = "" }, "no kind": func(c *journal.Config) { c.Kind = "" },
		"no id": func(c *journal.Config) { c.ID = "" }, "no text": func(c *journal.Config) { c.ID = "\xff" },
		"small": func(c *journal.Config) { c.MaxSize = journal.MaxRecord - 1 }, "negative": func(c *journal.Config) { c.MaxSize = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := journal.Create(cfg, []byte(`{}`))
		if !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: Create gave %v", what, err)
		}
		_, err = journal.Open(cfg)
		if !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: Open gave %v", what, err)
		}
	}
	j := create(t, good)
	deep := strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999) // valid, but not within a header
	for _, p := range []string{"", "1", "[]", "null", "{", "{}{}", `{} `, " {}", "{\n}", "{\t}", `{"a":1},"x":{"b":2}`, "{\"\xff\":1}"} {
		_, err := j.Append([]byte(p), false)
		wantError(t, err, journal.ErrInvalid)
		wantError(t, j.Rotate(j.Head(), []byte(p)), journal.ErrInvalid)
	}
	wantError(t, j.Rotate(j.Head(), []byte(deep)), journal.ErrInvalid)
	wantError(t, j.Rotate(j.Head(), nil), journal.ErrInvalid)
	fill(t, j, 0, 1)
	wantTexts(t, j, `{"i":0}`)
}

func TestZeroAndClosed(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	closed := create(t, cfg)
	closeIt(t, closed)
	for _, j := range []*journal.Journal{{}, closed} {
		_, err := j.Append([]byte(`{}`), true)
		wantError(t, err, journal.ErrClosed)
		wantError(t, j.Sync(), journal.ErrClosed)
		wantError(t, j.Rotate(j.Head(), []byte(`{}`)), journal.ErrClosed)
		for _, err := range j.Records() {
			wantError(t, err, journal.ErrClosed)
		}
		closeIt(t, j)
	}
}
