// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// stage writes what is new beside the tree's content.
func (a *applier) stage(list []change) error {
	if len(list) == 0 {
		return nil
	}
	if !a.r.Recovered {
		if err := a.noteRoot(a.sc.rootEntry); err != nil {
			return err
		}
	}
	a.staging = fmt.Sprintf("%s/.rollback-%d-%d", a.tree, os.Getpid(), time.Now().UnixNano())
	if err := os.Mkdir(a.staging, 0o700); err != nil {
		return err
	}
	a.first = map[string]string{}
	for _, c := range list {
		if c.new == nil || c.new.kind() == unix.S_IFDIR {
			continue
		}
		if err := a.make(c.path, *c.new); err != nil {
			return err
		}
	}
	return nil
}

// unstage leaves the tree as it was, the root's time included.
func (a *applier) unstage() error {
	if a.staging == "" || a.r.Recovered {
		return nil
	}
	return errors.Join(removeAll(a.staging), a.resetRoot(a.tree))
}

// noteRoot writes down which time the root gets when everything is done.
func (a *applier) noteRoot(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return a.write(a.noteOf(a.tree), text)
}

func (a *applier) staged(name string) string {
	return fmt.Sprintf("%s/%x", a.staging, sha256.Sum256([]byte(name)))
}

// make writes one staged entry, complete.
func (a *applier) make(name string, e entry) error {
	to := a.staged(name)
	if e.kind() == unix.S_IFLNK {
		if err := os.Symlink(string(e.Target), to); err != nil {
			return err
		}
	} else if first, made := a.first[string(e.Group)]; made && len(e.Group) > 0 {
		return os.Link(first, to)
	} else if err := a.bytes(to, e); err != nil {
		return err
	}
	if len(e.Group) > 0 {
		a.first[string(e.Group)] = to
	}
	if a.o.MTime == rollback.MTimeTouch && a.d != ignoresTouch {
		e.Sec = time.Now().Unix()
	}
	return a.attributes(to, e)
}

func (a *applier) bytes(to string, e entry) error {
	data, err := a.get("blobs", e.Data)
	if err != nil {
		return err
	}
	if e.Size <= wholeFile {
		if a.d == ignoresWriteErrors {
			_ = os.WriteFile(to, data, 0o600)
			return nil
		}
		return os.WriteFile(to, data, 0o600)
	}
	var list map[int64]string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(e.Size)
	for at, name := range list {
		data, gerr := a.get("blobs", name)
		for i := 0; i < len(data); i += 4096 { // holes stay holes
			block := data[i:min(i+4096, len(data))]
			if strings.Trim(string(block), "\x00") != "" {
				_, werr := f.WriteAt(block, at+int64(i))
				err = errors.Join(err, werr)
			}
		}
		err = errors.Join(err, gerr)
	}
	return errors.Join(err, f.Close())
}

// attributes sets all but the bytes of what stands at a path in staging, or behind a descriptor.
func (a *applier) attributes(path string, e entry) error {
	link := e.kind() == unix.S_IFLNK
	if a.m.Owner {
		if err := os.Lchown(path, int(e.UID), int(e.GID)); err != nil {
			return err
		}
	}
	if !link {
		if a.m.Xattrs {
			if err := a.setXattrs(path, e); err != nil {
				return err
			}
		}
		if err := unix.Chmod(path, e.Mode&0o7777); err != nil {
			return err
		}
	}
	flags := 0
	if link {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: e.Sec, Nsec: e.Nsec}},
		flags)
}

func (a *applier) setXattrs(path string, e entry) error {
	buffer := make([]byte, 64<<10)
	n, err := unix.Listxattr(path, buffer)
	if err != nil && err != unix.ENOTSUP {
		return err
	}
	for name := range strings.SplitSeq(string(buffer[:max(n, 0)]), "\x00") {
		if _, keep := e.Xattrs[name]; !keep && strings.HasPrefix(name, "user.") {
			if err := unix.Removexattr(path, name); err != nil {
				return err
			}
		}
	}
	for name, value := range e.Xattrs {
		if err := unix.Setxattr(path, name, value, 0); err != nil {
			return err
		}
	}
	return nil
}
