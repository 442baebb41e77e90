// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The calls of a writer, one by one: nothing is synced twice, and nothing less often than promised.
func TestSyncs(t *testing.T) {
	t.Parallel()
	m := newMemFS()
	j := create(t, memConfig(m))
	calls := func(do func() error) []string {
		t.Helper()
		from := len(m.calls)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		return append([]string(nil), m.calls[from:]...)
	}
	add := func(durable bool) func() error {
		return func() error { _, err := j.Append([]byte(`{}`), durable); return err }
	}
	rotate := func() error { return j.Rotate(j.Head(), []byte(`{}`)) }
	reopen := func() (err error) { j = open(t, memConfig(m)); return nil }
	const write, sync = "write run-7.journal", "sync run-7.journal"
	for i, c := range []struct {
		do   func() error
		want []string
	}{
		{j.Sync, nil},
		{add(false), []string{write}},
		{add(false), []string{write}},
		{add(true), []string{write, sync}},
		{j.Sync, nil},
		{add(false), []string{write}},
		{j.Sync, []string{sync}},
		{add(true), []string{write, sync}},
		{add(false), []string{write}},
		{rotate, []string{"make run-7.new", "truncate run-7.new", "write run-7.new", "sync run-7.new", "rename run-7.new", "sync dir"}},
		{j.Sync, nil},
		{add(false), []string{write}},
		{j.Close, []string{sync}},
		{reopen, []string{sync, "sync dir"}},
	} {
		if diff := cmp.Diff(c.want, calls(c.do)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// The path of every iteration must not feed the garbage collector.
func TestAppendAllocatesNothing(t *testing.T) {
	j := create(t, state(t)) // not parallel: AllocsPerRun counts the whole process
	p := payload(12345)
	for _, durable := range []bool{false, true} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := j.Append(p, durable); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("durable %v: %v allocations", durable, n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, durable := range map[string]bool{"written": false, "durable": true} {
		b.Run(name, func(b *testing.B) {
			cfg := state(b)
			cfg.MaxSize = 1 << 40
			j := create(b, cfg)
			p := []byte(`{"t":"begin","i":123,"at":"2026-01-02T03:04:05.678901234Z","reserved":{"tokens":123456,"cost":7890}}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.Append(p, durable); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen1000(b *testing.B) {
	cfg := state(b)
	j := create(b, cfg)
	fill(b, j, 0, 1000)
	closeIt(b, j)
	b.ReportAllocs()
	for b.Loop() {
		closeIt(b, open(b, cfg))
	}
}

func BenchmarkRotate(b *testing.B) {
	j := create(b, state(b))
	snapshot := object(4096)
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Rotate(j.Head(), snapshot); err != nil {
			b.Fatal(err)
		}
	}
}
