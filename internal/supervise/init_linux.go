// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// InitPath is what a wrapper executes: the file that [NewInit] made, under a descriptor, so that it needs no place in the
// wrapper's view. It needs /proc in there.
var InitPath = "/proc/self/fd/" + strconv.Itoa(fdInit)

// NewInit makes the program that a wrapper executes as process 1 of its namespace. It is this program's own binary in a
// sealed memory file, with another entry point: the kernel begins at a function of this package that needs no Go runtime.
// A process that starts so costs a tenth of a Go program's start, has one thread and hardly any memory of its own, and runs
// nothing of the host program, neither initialisers nor main.
//
// The error matches [errors.ErrUnsupported] if the binary on disk is not what runs, as with a packed one, or the
// architecture is neither amd64 nor arm64.
func NewInit() (*os.File, error) {
	if entryPC == 0 {
		return nil, fmt.Errorf("supervise: no init for this architecture: %w", errors.ErrUnsupported)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("supervise: own binary: %w", err)
	}
	defer self.Close()
	code, err := withEntry(self, entryPC)
	if err != nil {
		return nil, fmt.Errorf("supervise: own binary: %w", err)
	}
	return executable(code)
}

// withEntry returns what the kernel loads of an executable, with its entry point at a function of the running process and
// without the interpreter that would link it: nothing here needs to be linked.
func withEntry(self io.ReaderAt, pc uintptr) ([]byte, error) {
	file, err := elf.NewFile(self)
	if err != nil {
		return nil, err
	}
	var end uint64
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			end = max(end, p.Off+p.Filesz)
		}
	}
	const maxSize = 1 << 30
	if end == 0 || end > maxSize {
		return nil, fmt.Errorf("%w: %d bytes to load", errors.ErrUnsupported, end)
	}
	data := make([]byte, end)
	if _, err := self.ReadAt(data, 0); err != nil {
		return nil, err
	}
	bias, err := loadBias(file)
	if err != nil {
		return nil, err
	}
	entry := uint64(pc) - bias
	if err := sameCode(file, data, entry, pc); err != nil {
		return nil, err
	}
	var h elf.Header64
	file.ByteOrder.PutUint64(data[unsafe.Offsetof(h.Entry):], entry)
	// The section headers lie behind what is loaded.
	clear(data[unsafe.Offsetof(h.Shoff):][:unsafe.Sizeof(h.Shoff)])
	clear(data[unsafe.Offsetof(h.Shnum):][:unsafe.Sizeof(h.Shnum)+unsafe.Sizeof(h.Shstrndx)])
	return data, dropInterpreter(file, data)
}

// loadBias is the distance between where the file says that it wants to be and where the kernel has put it.
func loadBias(file *elf.File) (uint64, error) {
	auxv, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return 0, err
	}
	const atEntry, pair = 9, 16
	for ; len(auxv) >= pair; auxv = auxv[pair:] {
		if binary.NativeEndian.Uint64(auxv) == atEntry {
			return binary.NativeEndian.Uint64(auxv[8:]) - file.Entry, nil
		}
	}
	return 0, fmt.Errorf("%w: /proc/self/auxv names no entry point", errors.ErrUnsupported)
}

// sameCode compares the first instructions in the file with those in memory.
func sameCode(file *elf.File, data []byte, entry uint64, pc uintptr) error {
	const some = 16
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD || entry < p.Vaddr || entry+some > p.Vaddr+p.Filesz {
			continue
		}
		running := unsafe.Slice(*(**byte)(unsafe.Pointer(&pc)), some)
		if at := entry - p.Vaddr + p.Off; string(data[at:at+some]) == string(running) {
			return nil
		}
	}
	return fmt.Errorf("%w: the file does not hold the code that runs; is it packed?", errors.ErrUnsupported)
}

// dropInterpreter turns the entry of the program header that names one into one that means nothing.
func dropInterpreter(file *elf.File, data []byte) error {
	var h elf.Header64
	at := file.ByteOrder.Uint64(data[unsafe.Offsetof(h.Phoff):])
	size := uint64(file.ByteOrder.Uint16(data[unsafe.Offsetof(h.Phentsize):]))
	for i, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		header := at + uint64(i)*size
		if header+4 > uint64(len(data)) {
			return fmt.Errorf("%w: the program headers are not loaded", errors.ErrUnsupported)
		}
		file.ByteOrder.PutUint32(data[header:], uint32(elf.PT_NULL))
	}
	return nil
}

// executable returns a sealed memory file that can be executed. Kernels since 6.3 want to be told so; older ones refuse the
// flag.
func executable(data []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("containment-init", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("containment-init", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("supervise: memory file to execute (is the sysctl vm.memfd_noexec set?): %w", err)
	}
	f := os.NewFile(uintptr(fd), "init")
	if _, err = f.Write(data); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("supervise: init: %w", err)
	}
	return f, nil
}
