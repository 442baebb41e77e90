// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

// tally is what the caller of a journal was told, and what it counted.
type tally struct {
	created        bool
	count, durable int // records that were acknowledged, and those that are on the disk
}

func memConfig(m *memFS) journal.Config {
	cfg := config("memory")
	cfg.FS = m
	return cfg
}

// drive does everything that a journal can do, and goes on after errors as a stubborn caller would.
func drive(m *memFS, told *tally) {
	j, err := journal.Create(memConfig(m), []byte(`{}`))
	if err != nil {
		return
	}
	told.created = true
	for round := range 3 {
		for i := range 4 {
			if _, err := j.Append(fmt.Appendf(nil, `{"i":%d}`, told.count), i == 1); err == nil {
				told.count++
				if i == 1 {
					told.durable = told.count
				}
			}
		}
		if round == 1 && j.Sync() == nil {
			told.durable = told.count
		}
		if j.Rotate(j.Head(), fmt.Appendf(nil, `{"count":%d}`, told.count)) == nil {
			told.durable = told.count
		}
	}
	if _, err := j.Append([]byte(`{"last":1}`), false); err == nil {
		told.count++
	}
	if j.Close() == nil {
		told.durable = told.count
	}
}

// driveUntilDeath reports whether the process died by a fault.
func driveUntilDeath(m *memFS, told *tally) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	drive(m, told)
	return false
}

// recount opens the journal as the next process would and returns what it says: the snapshot and one for each record or cut.
func recount(m *memFS) (count int, err error) {
	j, err := journal.Open(memConfig(m))
	if err != nil {
		return 0, err
	}
	var snapshot struct{ Count int }
	if s := j.Header().Snapshot; s != nil {
		if err := json.Unmarshal(s, &snapshot); err != nil {
			return 0, err
		}
	}
	count = snapshot.Count
	for _, err := range j.Records() {
		if err != nil {
			return 0, err
		}
		count++
	}
	return count, j.Close()
}

// judge checks what a restart found: at least what was promised, and at most one more than was acknowledged.
func judge(m *memFS, told tally, promised int) error {
	if marker := m.names[name+".created"]; told.created && (marker == nil || len(marker.data) == 0) {
		return errors.New("nothing says any more that it was complete once")
	}
	count, err := recount(m)
	switch {
	case errors.Is(err, journal.ErrNotExist) && !told.created:
		_, err = journal.Create(memConfig(m), []byte(`{}`))
		return err
	case err != nil:
		return fmt.Errorf("it does not open: %w", err)
	case count < promised || count > told.count+1:
		return fmt.Errorf("the restart counts %d; %d were acknowledged and %d of them promised", count, told.count, promised)
	}
	return nil
}

// Each call to the file system fails or is the last one of the process, in each way; then the process restarts, or the
// machine does.
func TestEveryCrashPoint(t *testing.T) {
	t.Parallel()
	whole := newMemFS()
	var told tally
	drive(whole, &told)
	if told.count != 13 || told.durable != told.count {
		t.Fatalf("without faults %+v", told)
	}
	for what, hit := range map[string]fault{
		"EIO":         {err: syscall.EIO},
		"disk full":   {err: syscall.ENOSPC, part: true},
		"kill before": {die: true},
		"kill half":   {die: true, part: true},
		"kill after":  {die: true, after: true},
	} {
		for at := range whole.calls {
			m := newMemFS()
			m.before = func(call int, _ string) fault {
				if call == at {
					return hit
				}
				return fault{}
			}
			var told tally
			if died := driveUntilDeath(m, &told); died != hit.die {
				t.Fatalf("%s at %d: died is %v", what, at, died)
			}
			if err := judge(m.afterKill(), told, told.count); err != nil {
				t.Errorf("%s at call %d, %q: %v", what, at, whole.calls[at], err)
			}
			for seed := range uint64(20) {
				if err := judge(m.afterPowerLoss(rand.New(rand.NewPCG(seed, 0))), told, told.durable); err != nil {
					t.Errorf("%s at call %d, %q, then the power fails (%d): %v", what, at, whole.calls[at], seed, err)
				}
			}
		}
	}
}

// The repair of a torn tail, too, may die at each of its calls: the cut is never forgotten.
func TestEveryCrashPointOfRepair(t *testing.T) {
	t.Parallel()
	torn := func(n int) *memFS {
		m := newMemFS()
		drive(m, &tally{})
		file := m.names[name+".journal"]
		file.data = append(file.data, `{"n":99,"prev":"0123456789","data":{"lost":"`...)
		file.data = append(file.data, make([]byte, n)...)
		file.disk = append([]byte{}, file.data...)
		return m.afterKill()
	}
	for _, length := range []int{0, 30, 200} { // shorter and longer than the note
		whole := torn(length)
		if count, err := recount(whole); count != 14 || err != nil {
			t.Fatalf("%d, %v; want 13 records and a cut", count, err)
		}
		for at := range whole.calls {
			for _, hit := range []fault{{die: true}, {die: true, part: true}, {die: true, after: true}, {err: syscall.EIO, part: true}} {
				m := torn(length)
				m.before = func(call int, _ string) fault {
					if call == at {
						return hit
					}
					return fault{}
				}
				func() {
					defer func() { _ = recover() }()
					if _, err := recount(m); err == nil {
						t.Errorf("call %d, %q: the fault was ignored", at, whole.calls[at])
					}
				}()
				// A second note for what a first attempt left is allowed, none is not.
				for seed := range uint64(10) {
					if count, err := recount(m.afterPowerLoss(rand.New(rand.NewPCG(seed, 0)))); err != nil || count < 14 || count > 15 {
						t.Errorf("%+v at call %d, %q, then the power fails: %d, %v", hit, at, whole.calls[at], count, err)
					}
				}
				if count, err := recount(m.afterKill()); err != nil || count < 14 || count > 15 {
					t.Errorf("%+v at call %d, %q: %d, %v", hit, at, whole.calls[at], count, err)
				}
			}
		}
	}
}
