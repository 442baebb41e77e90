// SPDX-License-Identifier: Apache-2.0

package reexec

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	argv0Prefix = "containment-stage:"
	paramsFD    = 3
	// FirstFD is the descriptor number of the first of the files given to [Start].
	FirstFD = 4
	// maxParams caps what a stage reads; arguments and environment of a payload are limited by the kernel to less.
	maxParams = 16 << 20
	allSeals  = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
)

// magic begins the parameters, so that a sealed file made for another purpose is not taken for ours.
var magic = []byte("containment stage parameters 1\n")

// Register runs main and ends the process with its return value, if this process was started as the stage of that name;
// else it returns. It must be called from an init function.
func Register(name string, main func(params []byte) int) {
	if len(os.Args) == 0 || os.Args[0] != argv0Prefix+name {
		return
	}
	params, err := readParams()
	if err != nil {
		// Somebody used our argv[0] without our parameters. Going on as the host program would be a surprise as well.
		exit(125)
	}
	exit(main(params))
}

// exit ends the process at once. os.Exit would run what the host program's test or race instrumentation does at the end
// of a process (the race detector sleeps for a second).
func exit(code int) {
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

func readParams() ([]byte, error) {
	seals, err := unix.FcntlInt(paramsFD, unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, fmt.Errorf("reexec: descriptor %d is not a memory file: %w", paramsFD, err)
	}
	if seals&allSeals != allSeals {
		return nil, fmt.Errorf("reexec: descriptor %d is not sealed", paramsFD)
	}
	f := os.NewFile(paramsFD, "params")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxParams))
	if err != nil {
		return nil, fmt.Errorf("reexec: parameters: %w", err)
	}
	params, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return nil, fmt.Errorf("reexec: descriptor %d holds something else", paramsFD)
	}
	return params, nil
}

// Start starts the stage of that name. It sees params and, from [FirstFD] on, files; a nil file is a closed descriptor.
// Its standard streams are /dev/null, it leads a session of its own and its environment is empty.
func Start(name string, params []byte, files []*os.File) (*os.Process, error) {
	memory, err := Sealed(append(bytes.Clone(magic), params...))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("reexec: %w", err)
	}
	defer null.Close()
	attr := &os.ProcAttr{
		Dir: "/", // a stage must not keep a directory of the host busy
		// A stage has one thread that does something; what it forks copies its page tables, so its heap stays small.
		Env:   []string{"GOMAXPROCS=1", "GOGC=25"},
		Files: append([]*os.File{null, null, null, memory}, files...),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	p, err := os.StartProcess("/proc/self/exe", []string{argv0Prefix + name}, attr)
	if err != nil {
		return nil, fmt.Errorf("reexec: start stage %s: %w", name, err)
	}
	return p, nil
}

// Sealed returns a memory file with the data that nobody can change any more, at offset 0.
func Sealed(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("containment", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("reexec: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "params")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("reexec: write parameters: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, allSeals); err != nil {
		f.Close()
		return nil, fmt.Errorf("reexec: seal parameters: %w", err)
	}
	return f, nil
}
