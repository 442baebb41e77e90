// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

// watcher keeps all events.
type watcher struct {
	mu     sync.Mutex
	events []runaway.Event
	each   func(context.Context, runaway.Event)
}

func (w *watcher) Observe(ctx context.Context, e runaway.Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	if w.each != nil {
		w.each(ctx, e)
	}
}

// lines are the events as short texts.
func (w *watcher) lines() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		line := e.Kind.String()
		switch e.Kind {
		case runaway.EventBegin:
			line = fmt.Sprintf("begin %d", e.Iteration)
		case runaway.EventEnd:
			line = fmt.Sprintf("end %d %v", e.Iteration, e.Outcome)
		case runaway.EventWarn:
			line = fmt.Sprintf("warn %s %d", e.Budget, e.Percent)
		case runaway.EventStop:
			line = fmt.Sprintf("stop %v", e.Reason)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	s, o := runaway.UnsafeMemStore(), &runaway.Options{Observer: w, Metered: runaway.MeterTokens}
	l := runaway.Limits{MaxIterations: 8, Iterations: 9, Budget: runaway.Usage{Tokens: 100}}
	g := open(t, s, l, o)
	it := beginWith(t, g, runaway.Estimate{Tokens: 1})
	_, _ = it.Seen(print(1))
	_, _ = it.Seen(print(1))
	if err := errors.Join(it.Spend(runaway.Usage{Tokens: 49}), it.Spend(runaway.Usage{Tokens: 31}),
		it.End(accepted)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Pause("x"), g.Resume(runaway.Approval{By: "a", Reason: "b"})); err != nil {
		t.Fatal(err)
	}
	begun := beginWith(t, g, runaway.Estimate{Tokens: 1})
	_ = begun
	if _, ok := errors.AsType[*runaway.LeakError](g.Close(t.Context())); !ok {
		t.Error("no leak")
	}
	want := []string{
		"opened", "clamped", "begin 1", "duplicate", "warn tokens 50", "warn tokens 80", "end 1 duplicate", "pause",
		"resume",
		"begin 2", "leaked", "end 2 failed", "closed",
	}
	if got := w.lines(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// After a restart no level is reported that was reached before.
	w = &watcher{}
	o.Observer, o.Amendment = w, &runaway.Amendment{By: "a", Reason: "b"}
	l.MaxIterations = 9
	g = open(t, s, l, o)
	for range 2 {
		it = beginWith(t, g, runaway.Estimate{Tokens: 1})
		_ = it.Spend(runaway.Usage{Tokens: 8})
		_ = it.End(accepted)
	}
	if err := g.Stop(runaway.ReasonOperator, "enough"); err != nil {
		t.Fatal(err)
	}
	shut(t, g)
	want = []string{"opened", "amended", "begin 3", "end 3 accepted", "begin 4", "warn tokens 95", "end 4 accepted",
		"stop operator", "closed"}
	if got := w.lines(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWarnings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := &watcher{}
		s, o := runaway.UnsafeMemStore(), &runaway.Options{Observer: w, Metered: runaway.MeterAll}
		l := runaway.Limits{MaxIterations: 20, Wall: 100 * time.Minute, Budget: runaway.Usage{Cost: 20, Calls: 40,
			CPU: 20, Tokens: none}}
		g := open(t, s, l, o)
		for n := 1; n <= 20; n++ {
			it := beginWith(t, g, runaway.Estimate{Cost: 1, Calls: 1, CPU: 1})
			if err := errors.Join(it.Spend(runaway.Usage{Cost: 1, Calls: 1, CPU: 1, Tokens: 1 << 60}),
				it.End(accepted)); err != nil {
				t.Fatal(err)
			}
			if n == 12 {
				g = reopen(t, g, s, l, o)
			}
			time.Sleep(4999 * time.Millisecond * 60)
		}
		shut(t, g)
		warnings := slices.DeleteFunc(w.lines(), func(s string) bool { return !strings.HasPrefix(s, "warn ") })
		slices.Sort(warnings)
		want := []string{
			"warn calls 50", "warn cost 50", "warn cost 80", "warn cost 95", "warn cpu 50", "warn cpu 80",
			"warn cpu 95",
			"warn iterations 50", "warn iterations 80", "warn iterations 95", "warn wall 50", "warn wall 80",
			"warn wall 95",
		}
		if !slices.Equal(warnings, want) {
			t.Errorf("got  %q\nwant %q", warnings, want)
		}
	})
}

// TestWarningsOfAChild come once, however often it goes back to work.
func TestWarningsOfAChild(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{Budget: free}, &runaway.Options{Observer: w,
		Metered: runaway.MeterAll})
	for n := range 4 {
		it := begin(t, g)
		c := child(t, it, "c", runaway.Limits{Budget: runaway.Usage{Tokens: 10}})
		inner := beginWith(t, c, runaway.Estimate{Tokens: 2})
		err := errors.Join(inner.Spend(runaway.Usage{Tokens: 2}), inner.End(fresh(n)), it.End(fresh(n)))
		if err != nil {
			t.Fatal(err)
		}
	}
	shut(t, g)
	warnings := slices.DeleteFunc(w.lines(), func(s string) bool { return !strings.HasPrefix(s, "warn ") })
	if want := []string{"warn tokens 50", "warn tokens 80"}; !slices.Equal(warnings, want) {
		t.Errorf("got  %q\nwant %q", warnings, want)
	}
}

// TestObserverChangesNothing: one that blocks, panics or calls back.
func TestObserverChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *runaway.Governor
		release := make(chan struct{})
		for name, each := range map[string]func(context.Context, runaway.Event){
			"panics": func(context.Context, runaway.Event) { panic("observer") },
			"calls back": func(ctx context.Context, e runaway.Event) {
				if e.Kind != runaway.EventOpened {
					g.Status()
				}
			},
			"blocks": func(context.Context, runaway.Event) { <-release },
		} {
			w := &watcher{each: each}
			g = open(t, runaway.UnsafeMemStore(), runaway.Limits{}, &runaway.Options{Observer: w})
			if steps, stop := drive(t, g, fresh); steps != 1000 || stop.Reason != runaway.ReasonIterations {
				t.Errorf("%s: %d steps, then %v", name, steps, stop)
			}
			began := time.Now()
			err := g.Close(t.Context())
			st := g.Status()
			switch leak, ok := errors.AsType[*runaway.LeakError](err); {
			case name == "blocks" && (!ok || !leak.Observer || time.Since(began) != 10*time.Second || st.Dropped < 900):
				t.Errorf("close after %v: %v, %d dropped", time.Since(began), err, st.Dropped)
			case name == "panics" && st.Panics < 1000, name != "blocks" && err != nil:
				t.Errorf("%s: %v, %d panics", name, err, st.Panics)
			}
		}
		close(release)
	})
}

func TestSlogObserver(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{MaxIterations: 2, Budget: runaway.Usage{Tokens: none}},
		&runaway.Options{Logger: logger})
	it := begin(t, g)
	_, _ = it.Seen(print(1))
	_ = it.Spend(runaway.Usage{Tokens: 5})
	_ = it.End(runaway.Outcome{Kind: runaway.RolledBack})
	drive(t, g, fresh)
	shut(t, g)
	got := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		level := record["level"].(string)
		got[level] = append(got[level], strings.TrimPrefix(record["msg"].(string), "runaway: "))
		if record["run"] != runID {
			t.Errorf("no run id: %s", line)
		}
	}
	for level, want := range map[string][]string{
		"DEBUG": {"begin", "end", "begin", "end"}, "INFO": {"opened", "closed"}, "WARN": {"warn", "warn", "warn"},
		"ERROR": {"stop"},
	} {
		if !slices.Equal(got[level], want) {
			t.Errorf("%s: %q, want %q", level, got[level], want)
		}
	}
	for _, want := range []string{`"outcome":"rolled-back"`, `"tokens":5`, `"reason":"iterations"`,
		`"budget":"iterations","percent":50`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
	runaway.SlogObserver(nil).Observe(t.Context(), runaway.Event{Kind: runaway.EventStop})
}
