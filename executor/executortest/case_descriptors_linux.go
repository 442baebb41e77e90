// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// inherit leaves a descriptor open in this process at a number of its choice or the next free one, without CLOEXEC. A
// process that may not have that many gets one near the highest that it may.
func (s *scene) inherit(fd, at int) (int, error) {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 0, s.fault(err)
	}
	at = int(min(uint64(at), lim.Cur-16))
	got, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD, uintptr(at))
	if errno != 0 {
		return 0, s.fault(errno)
	}
	s.later(func() { _ = syscall.Close(int(got)) })
	return int(got), nil
}

// fdsClosed leaves files open at low and high numbers: loops that close up to 255, or up to the soft limit, miss some.
func fdsClosed(s *scene) error {
	secret := randomHex(16)
	path, err := s.plant("secret", secret, 0o600)
	if err != nil {
		return s.fault(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return s.fault(err)
	}
	defer f.Close()
	for _, at := range []int{7, 47, 300, 2048} {
		if _, err := s.inherit(int(f.Fd()), at); err != nil {
			return err
		}
	}
	res, err := s.reach(s.plainSpec("fds"))
	if err != nil {
		return err
	}
	out := res.Stdout.Bytes()
	if strings.Contains(string(out), secret) {
		return s.breach("a file of the host was read through an inherited descriptor: %q", answers(out, "fd"))
	}
	if open := answers(out, "fd"); len(open) > 0 {
		return s.breach("descriptors beside 0, 1 and 2 are open: %q", open)
	}
	return nil
}

// fdDirectory opens a file relative to an inherited directory, which no rule about paths sees.
func fdDirectory(s *scene) error {
	secret := randomHex(16)
	path, err := s.plant("closed/secret", secret, 0o644)
	if err != nil {
		return s.fault(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return s.fault(err)
	}
	defer dir.Close()
	at, err := s.inherit(int(dir.Fd()), 300)
	if err != nil {
		return err
	}
	res, err := s.reach(s.spec("fd-openat", job{N: int64(at), Name: "secret"}))
	if err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), secret) {
		return s.breach("a file of the host was opened through an inherited directory")
	}
	return nil
}

// fdSocket writes to an inherited socket. The verdict is what arrives at its other end, on the host.
func fdSocket(s *scene) error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return s.fault(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "ours")
	defer ours.Close()
	defer syscall.Close(pair[1])
	at, err := s.inherit(pair[1], 300)
	if err != nil {
		return err
	}
	if _, err := s.reach(s.spec("fd-write", job{N: int64(at)})); err != nil {
		return err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return s.fault(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "" {
		return s.breach("the payload wrote %q to an inherited socket", line)
	}
	return nil
}
