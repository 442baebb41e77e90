// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/evoseal/containment/rollback"
)

// changingCases are about files that change near a checkpoint or during one.
func changingCases() []Case {
	return []Case{
		newCase("C6", "same-size", 0, "an edit that keeps size and time is missed", sameSize),
		newCase("C6b", "same-tick", 0, "an edit right after a checkpoint is missed", sameTick),
		newCase("C8", "rewritten", 0, "a file that is rewritten meanwhile is captured half old, half new", rewritten),
		newCase("C8b", "replaced", 0, "a file that grows between listing and reading is cut off", replaced),
		newCase("C8c", "moving-names", 0,
			"a file that moves during the walk is in no directory or the checkpoint fails unheard",
			movingNames),
	}
}

func sameSize(s *scene) {
	sub := s.subject()
	s.file("f", "version one").stamp("f", 1_600_000_000, 5)
	first := s.checkpoint(sub)
	s.file("f", "version two").stamp("f", 1_600_000_000, 5)
	second := s.checkpoint(sub)
	s.remove("f").file("f", "version 333").stamp("f", 1_600_000_000, 5)
	third := s.checkpoint(sub)
	for id, want := range map[rollback.ID]string{first.ID: "version one", second.ID: "version two",
		third.ID: "version 333"} {
		s.restore(sub, id)
		s.holds("f", want)
	}
	s.want(first.Digest != second.Digest, "two trees with different bytes have one digest")
}

// sameTick writes as fast as it can, so that a coarse clock stamps several versions alike.
func sameTick(s *scene) {
	sub := s.subject()
	taken := map[rollback.ID]string{}
	for i := range 30 {
		text := fmt.Sprintf("version %03d", i)
		s.must(os.WriteFile(s.path("f"), []byte(text), 0o644))
		taken[s.checkpoint(sub).ID] = text
	}
	s.want(len(taken) == 30, "30 states have %d checkpoints", len(taken))
	for id, want := range taken {
		s.restore(sub, id)
		s.holds("f", want)
	}
}

func (s *scene) holds(name, want string) {
	got, err := os.ReadFile(s.path(name))
	s.want(err == nil && string(got) == want, "%s holds %q (%v), want %q", name, shorten(got), err, want)
}

func shorten(b []byte) []byte { return b[:min(len(b), 60)] }

// meanwhile runs f over and over beside what the case does, until stop is called or a run fails.
func meanwhile(f func(i int) error) (stop func() error) {
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-done:
				failed <- nil
				return
			default:
				err = f(i)
			}
		}
		<-done
		failed <- err
	}()
	return sync.OnceValue(func() error { close(done); return <-failed })
}

// during takes checkpoints while f runs and returns those that were taken; a refusal must be ErrUnstable.
func (s *scene) during(sub Subject, times int, f func(i int) error) (taken []rollback.Checkpoint) {
	stop := meanwhile(f)
	defer func() { _ = stop() }()
	for range times {
		c, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
		if err == nil {
			taken = append(taken, c)
		} else if !errors.Is(err, rollback.ErrUnstable) {
			s.fail("checkpoint of a tree that changes: %v, want success or %q", err, rollback.ErrUnstable)
		}
	}
	s.must(stop())
	return taken
}

// rewritten: somebody writes a file in place, page by page, and stamps each page with the number of the pass. So the
// file as it was at one moment has the pages of one pass up to a place, and those of the pass before from there on.
// Whatever else a checkpoint holds was put together from several moments.
func rewritten(s *scene) {
	const pages, page = 1024, 4096
	stamp := func(pass int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", pass), page/8) }
	s.must(os.WriteFile(s.path("f"), bytes.Repeat(stamp(0), pages), 0o644))
	f, err := os.OpenFile(s.path("f"), os.O_WRONLY, 0)
	s.must(err)
	defer f.Close()
	sub := s.subject()
	taken := s.during(sub, 8, func(i int) error {
		for at := range int64(pages) {
			if _, err := f.WriteAt(stamp(i+1), at*page); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	for _, c := range taken {
		s.restore(sub, c.ID)
		got, err := os.ReadFile(s.path("f"))
		s.want(err == nil && len(got) == pages*page, "the file has %d bytes (%v)", len(got), err)
		s.oneMoment(got, page)
	}
}

// oneMoment demands that the pages are of one pass, or of two in a row, the later one first.
func (s *scene) oneMoment(got []byte, page int) {
	last, turns := string(got[:8]), 0
	for at := 0; at < len(got); at += page {
		if now := string(got[at : at+8]); now != last {
			turns++
			s.want(turns == 1 && now < last,
				"a checkpoint holds a file that never was: pages of pass %s, then from byte %d on of %s", last, at, now)
			last = now
		}
	}
}

func replaced(s *scene) {
	versions := [][]byte{[]byte("short"), bytes.Repeat([]byte("long "), 20_000)}
	s.must(os.WriteFile(s.path("f"), versions[0], 0o644))
	sub := s.subject()
	taken := s.during(sub, 25, func(i int) error {
		if err := os.WriteFile(s.path(".new"), versions[i%2], 0o644); err != nil {
			return err
		}
		time.Sleep(time.Duration(i%3) * time.Millisecond) // so that some checkpoints succeed
		return os.Rename(s.path(".new"), s.path("f"))
	})
	s.wholeVersions(sub, taken, versions)
}

// wholeVersions demands that each checkpoint holds one of the versions of file f.
func (s *scene) wholeVersions(sub Subject, taken []rollback.Checkpoint, versions [][]byte) {
	for _, c := range taken {
		s.restore(sub, c.ID)
		got, err := os.ReadFile(s.path("f"))
		s.want(err == nil, "%v", err)
		whole := false
		for _, v := range versions {
			whole = whole || bytes.Equal(v, got)
		}
		s.want(whole, "a checkpoint holds %d bytes that never were the whole file: %q…", len(got), shorten(got))
	}
}

// movingNames: while files move between directories a checkpoint may see one twice or not at all; it must notice the
// latter by the directories' times, or fail.
func movingNames(s *scene) {
	s.mkdir("a").mkdir("b")
	for i := range 30 {
		s.file(fmt.Sprintf("a/%02d", i), fmt.Sprint(i))
	}
	sub := s.subject()
	s.must(s.err)
	s.during(sub, 20, func(i int) error {
		from, to := "a", "b"
		if i/30%2 == 1 {
			from, to = "b", "a"
		}
		return os.Rename(s.path(fmt.Sprintf("%s/%02d", from, i%30)), s.path(fmt.Sprintf("%s/%02d", to, i%30)))
	})
	want := s.look()
	c := s.checkpoint(sub)
	s.remove("a", "b")
	s.restore(sub, c.ID)
	s.same("the tree after it came to rest", want, s.look())
}
