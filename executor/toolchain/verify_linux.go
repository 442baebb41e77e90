// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freeze takes every write permission away, also the owner's, and lets everybody read. The umask of the host program
// must not decide about either.
func freeze(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		if fi.IsDir() || fi.Mode().Perm()&0o100 != 0 {
			mode = 0o555
		}
		if path == dir {
			mode = 0o755 // until it is complete
		}
		return os.Chmod(path, mode)
	})
}

// declareComplete writes the file that makes the directory a seed, after everything else is on the disk.
func declareComplete(dir string) error {
	sum, err := sealed(dir)
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	temporary := filepath.Join(dir, "completing")
	if err := os.WriteFile(temporary, []byte(sum+"\n"), 0o444); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o444); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, complete)); err != nil {
		return err
	}
	return errors.Join(os.Chmod(dir, 0o555), d.Sync())
}

// sealed hashes the index, which names the outputs by their hashes, and the program.
func sealed(dir string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"cache/index", program} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func refused(path string, err error) error {
	const fix = "find out who changed it, then remove the seed's directory"
	return &SeedError{Path: path, Rule: "must be as it was made", Fix: fix, Err: err}
}

// checkSeed is the quick check before each run: nobody but the caller and root can have changed what verifySeed has
// seen.
func checkSeed(dir string) error {
	if err := errors.Join(trusted(dir), reachable(dir)); err != nil {
		return refused(dir, err)
	}
	for _, name := range []string{".", complete, program, "cache", "cache/index", "mod"} {
		path := filepath.Join(dir, name)
		fi, err := os.Lstat(path)
		if err == nil {
			err = oursAlone(path, fi)
		}
		if err != nil {
			return refused(path, err)
		}
	}
	return nil
}

// verifySeed looks at every entry and compares the outputs with their names, which are their hashes.
func verifySeed(dir string) error {
	if err := checkSeed(dir); err != nil {
		return err
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		return oursAlone(path, fi)
	})
	if err != nil {
		return refused(dir, err)
	}
	if err := verifyOutputs(dir); err != nil {
		return refused(dir, err)
	}
	return nil
}

func verifyOutputs(dir string) error {
	got, err := sealed(dir)
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(dir, complete))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(want)) != got {
		return fmt.Errorf("%s or cache/index is not what %s says", filepath.Join(dir, program), complete)
	}
	index, err := os.ReadFile(filepath.Join(dir, "cache", "index"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(index)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("the index has the line %q", line)
		}
		if err := verifyOutput(filepath.Join(dir, "cache", fields[1]+"-d"), fields[1]); err != nil {
			return err
		}
	}
	return nil
}

func verifyOutput(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has the hash %s", path, got)
	}
	return nil
}

// removeSeed removes a directory whose parts have no write permission.
func removeSeed(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700) // before it is read
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// lockFile takes an exclusive lock. Processes that inherit the file hold it too.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(&fs.PathError{Op: "flock", Path: path, Err: err}, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(lockPoll):
		}
	}
}

const lockPoll = 50 * time.Millisecond
