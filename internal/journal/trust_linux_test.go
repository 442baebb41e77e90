// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/journal"
	"github.com/evoseal/containment/internal/testenv"
)

// must is for steps of a test that have nothing to do with what it tests.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// untrustedEverywhere demands that nothing touches a journal that others could have prepared.
func untrustedEverywhere(t *testing.T, what string, cfg journal.Config) {
	t.Helper()
	_, openErr := journal.Open(cfg)
	_, verifyErr := journal.Verify(cfg)
	for _, err := range []error{openErr, verifyErr} {
		if !errors.Is(err, journal.ErrUntrusted) {
			t.Errorf("%s: got %v, want ErrUntrusted", what, err)
		}
	}
}

// Links, pipes, second names and loose modes in the place of each file.
func TestUntrustedFiles(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".journal", ".created"} {
		for what, spoil := range map[string]func(path string) error{
			"a link to a good file": func(path string) error {
				return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
			},
			"a link to nothing": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/nowhere", path)) },
			"a second name":     func(path string) error { return os.Link(path, path+".second") },
			"a pipe":            func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
			"read by others":    func(path string) error { return os.Chmod(path, 0o604) },
			"group-writable":    func(path string) error { return os.Chmod(path, 0o620) },
		} {
			cfg := state(t)
			closeIt(t, create(t, cfg))
			must(t, spoil(filepath.Join(cfg.Dir, name+suffix)))
			untrustedEverywhere(t, what+" as "+suffix, cfg)
			if _, err := journal.Create(cfg, []byte(`{}`)); err == nil {
				t.Errorf("%s as %s: Create made a new one", what, suffix)
			}
		}
	}
}

// What will be renamed over the journal is written by nobody else, and into nothing else.
func TestUntrustedNew(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(cfg.Dir, name+".new")))
	wantError(t, j.Rotate(j.Head(), []byte(`{}`)), journal.ErrUntrusted)
	must(t, os.Remove(filepath.Join(cfg.Dir, name+".new")))
	must(t, os.Link(victim, filepath.Join(cfg.Dir, name+".new")))
	wantError(t, j.Rotate(j.Head(), []byte(`{}`)), journal.ErrUntrusted)
	if data, err := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("the victim holds %q, %v", data, err)
	}
	must(t, os.Remove(filepath.Join(cfg.Dir, name+".new")))
	must(t, os.WriteFile(filepath.Join(cfg.Dir, name+".new"), object(100000), 0o600)) // left by a crash
	must(t, j.Rotate(j.Head(), []byte(`{}`)))
	closeIt(t, j)
	wantTexts(t, open(t, cfg))
}

func TestUntrustedDirectory(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(dir string) error{
		"group-writable":  func(dir string) error { return os.Chmod(dir, 0o720) },
		"world-writable":  func(dir string) error { return os.Chmod(dir, 0o1702) },
		"a link":          func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir)) },
		"a regular file ": func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.WriteFile(dir, nil, 0o600)) },
	} {
		cfg := state(t)
		closeIt(t, create(t, cfg))
		must(t, spoil(cfg.Dir))
		untrustedEverywhere(t, what, cfg)
		cfg.Dir += "/"
		untrustedEverywhere(t, what+" with a slash", cfg)
		cfg.Name = "other"
		_, err := journal.Create(cfg, []byte(`{}`))
		wantError(t, err, journal.ErrUntrusted)
	}
	// Others may look, if the caller wants that.
	cfg := state(t)
	must(t, os.Mkdir(cfg.Dir, 0o755))
	create(t, cfg)
}

// Files of another user, although they can be opened.
func TestForeignOwner(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "root")
	for _, of := range []string{"", name + ".journal", name + ".created"} {
		cfg := state(t)
		closeIt(t, create(t, cfg))
		must(t, os.Chown(filepath.Join(cfg.Dir, of), 65534, 65534))
		untrustedEverywhere(t, "foreign "+of, cfg)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	cfg := config(filepath.Join(t.TempDir(), "a", "b")) // both are made
	j := create(t, cfg)
	must(t, j.Rotate(j.Head(), []byte(`{}`)))
	for of, want := range map[string]os.FileMode{"": 0o700, name + ".journal": 0o600, name + ".created": 0o600} {
		info, err := os.Lstat(filepath.Join(cfg.Dir, of))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: mode %v, %v; want %v", of, info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(cfg.Dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v; want the journal and its marker", entries, err)
	}
}

// A writer whose files somebody removed, replaced or changed must not go on as if it still counted, nor put its journal
// over that of the next run.
func TestPulledAway(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(path string) error{
		"journal removed":  func(path string) error { return os.Remove(path + ".journal") },
		"marker removed":   func(path string) error { return os.Remove(path + ".created") },
		"cut":              func(path string) error { return os.Truncate(path+".journal", 200) },
		"all and replaced": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		cfg := state(t)
		j, other := create(t, cfg), create(t, state(t))
		fill(t, j, 0, 5)
		must(t, spoil(filepath.Join(cfg.Dir, name)))
		if what == "all and replaced" {
			other = create(t, cfg)
			fill(t, other, 7, 8)
		}
		err := j.Rotate(j.Head(), []byte(`{}`))
		wantError(t, err, journal.ErrBroken)
		_, err = j.Append([]byte(`{}`), false)
		wantError(t, err, journal.ErrBroken)
		must(t, other.Sync())
	}
	cfg := state(t)
	j := create(t, cfg)
	must(t, os.Remove(filepath.Join(cfg.Dir, name+".journal")))
	_, err := j.Append([]byte(`{}`), true)
	wantError(t, err, journal.ErrBroken)
}

// Records must lead to the head that Open verified, although what is left of the file is in order.
func TestCutWhileOpen(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	line := j.Size()
	fill(t, j, 0, 2)
	must(t, os.Truncate(filepath.Join(cfg.Dir, name+".journal"), line))
	var last error
	for _, err := range j.Records() {
		last = err
	}
	wantError(t, last, journal.ErrCorrupt)
}

// An unfinished creation leaves nothing that counts.
func TestUnfinishedCreation(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	must(t, os.Mkdir(cfg.Dir, 0o700))
	must(t, os.WriteFile(filepath.Join(cfg.Dir, name+".created"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(cfg.Dir, name+".new"), []byte("{\"n\""), 0o600))
	_, err := journal.Open(cfg)
	wantError(t, err, journal.ErrNotExist)
	closeIt(t, create(t, cfg))
	must(t, os.Truncate(filepath.Join(cfg.Dir, name+".created"), 0)) // as if it had died before the last step
	closeIt(t, open(t, cfg))
	must(t, os.Remove(filepath.Join(cfg.Dir, name+".journal")))
	_, err = journal.Open(cfg)
	wantError(t, err, journal.ErrCorrupt)
}

// A child that was just forked has a copy of the descriptor; Close must not wait for it to execute its program.
func TestCloseDropsTheLock(t *testing.T) {
	t.Parallel()
	dir, err := journal.OpenDir(t.TempDir(), false)
	must(t, err)
	f, err := dir.Open("x", journal.CreateOrOpen)
	must(t, err)
	must(t, f.Lock())
	again, err := dir.Open("x", journal.ReadWrite)
	must(t, err)
	if err := again.Lock(); !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("got %v, want ErrLocked", err)
	}
	copied, err := syscall.Dup(int(f.(interface{ Fd() uintptr }).Fd()))
	must(t, err)
	must(t, f.Close())
	must(t, again.Lock())
	must(t, errors.Join(again.Close(), syscall.Close(copied), dir.Close()))
}
