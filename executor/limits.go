// SPDX-License-Identifier: Apache-2.0

package executor

import "time"

// Limits bound one run. A zero field takes the value of [DefaultLimits]; a negative one is a fault. There is no value
// that means "unlimited": whoever wants more says how much. The mechanism that really enforced each limit, and whether
// it bound the whole run or only each process, is in [Result.Enforced].
type Limits struct {
	Wall time.Duration // from the payload's start to its end, set-up not included; default 60 s
	CPU  time.Duration // user and system time, summed over the run where CPUBounded; default 60 s
	CPUs float64       // processors that the run may keep busy; default 1

	Memory        int64 // bytes, summed over the run where MemoryBounded; default 1 GiB
	Disk          int64 // bytes that the run may add to its writable file systems; default 512 MiB (and DiskInodes files)
	FileSize      int64 // bytes of any one file; default 256 MiB
	Output        int64 // bytes of each of stdout and stderr; default 16 MiB
	ArtifactBytes int64 // bytes of all artifacts together; default 64 MiB

	Processes     int // tasks (threads count) at one time, where ProcessesBounded; default 128
	OpenFiles     int // descriptors of each process; default 1,024
	ArtifactFiles int // number of artifacts; default 1,000
}

const (
	// CaptureSize is the number of bytes kept from the beginning and, again, from the end of each output stream.
	CaptureSize = 64 << 10
	// DiskInodes is the number of files and directories that a run may add where Limits.Disk is enforced.
	DiskInodes = 64 << 10
	// ArtifactDepth is the number of path components below the workspace at which the search for artifacts ends.
	ArtifactDepth = 32
)

// Floors below which a run cannot start; Validate refuses smaller limits. The memory figure is what a static shell or
// an interpreter needs before its first line; a Go program needs 64 MiB where only the data segment can be limited.
const (
	minWall      = time.Millisecond
	minCPU       = time.Millisecond
	minCPUs      = 0.01 // the kernel's smallest quota is 1 ms in 100 ms
	minMemory    = 16 << 20
	minDisk      = 64 << 10
	minFileSize  = 1
	minOutput    = 1
	minProcesses = 1
	minOpenFiles = 16
)

// maxCPUs is more than a kernel can have. Without a ceiling the arithmetic of a quota could overflow into "none".
const maxCPUs = 8192

// DefaultLimits returns the values that zero fields take.
func DefaultLimits() Limits {
	return Limits{
		Wall:          60 * time.Second,
		CPU:           60 * time.Second,
		CPUs:          1,
		Memory:        1 << 30,
		Disk:          512 << 20,
		FileSize:      256 << 20,
		Output:        16 << 20,
		ArtifactBytes: 64 << 20,
		Processes:     128,
		OpenFiles:     1024,
		ArtifactFiles: 1000,
	}
}

// WithDefaults returns l with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Wall:          orDefault(l.Wall, d.Wall),
		CPU:           orDefault(l.CPU, d.CPU),
		CPUs:          orDefault(l.CPUs, d.CPUs),
		Memory:        orDefault(l.Memory, d.Memory),
		Disk:          orDefault(l.Disk, d.Disk),
		FileSize:      orDefault(l.FileSize, d.FileSize),
		Output:        orDefault(l.Output, d.Output),
		ArtifactBytes: orDefault(l.ArtifactBytes, d.ArtifactBytes),
		Processes:     orDefault(l.Processes, d.Processes),
		OpenFiles:     orDefault(l.OpenFiles, d.OpenFiles),
		ArtifactFiles: orDefault(l.ArtifactFiles, d.ArtifactFiles),
	}
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
