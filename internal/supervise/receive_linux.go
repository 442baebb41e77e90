// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A job comes as one message: a byte, with these descriptors. The first one is a sealed memory file with the job; the
// others are in the order of fixedFiles, then the optional ones.
const (
	fixedFiles = 6 // control, report, lock, stdin, stdout, stderr
	wrapFiles  = 3 // diagnostics, arguments, init
	maxFiles   = 1 + fixedFiles + 2 + wrapFiles + maxCgroups
)

// receive takes one job and starts it.
func (s *server) receive() {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := unix.Recvmsg(s.socket, b[:], oob, unix.MSG_CMSG_CLOEXEC)
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return
	case err != nil || n == 0:
		// The host program is gone, or wants no more. Its runs end by their own control pipes.
		unix.Close(s.socket)
		s.socket = -1
		return
	}
	files, err := rights(oob[:oobn])
	defer func() {
		for i, fd := range files {
			if i < 1 || i > 3 || err != nil { // control, report and lock are the run's, once there is one
				unix.Close(fd)
			}
		}
	}()
	if err == nil && (flags&unix.MSG_CTRUNC != 0 || len(files) < 1+fixedFiles) {
		err = unix.EBADMSG
	}
	if err != nil {
		return // the end of the report pipe tells the host program
	}
	var job *Job
	if job, err = readJob(files[0]); err == nil && len(files) != 1+fixedFiles+job.optional() {
		err = unix.EBADMSG
	}
	if err != nil {
		report(files[2], Event{Kind: Failed, Step: StepMonitor, Errno: uint32(unix.EBADMSG)})
		return
	}
	// Nobody may read any more; neither a guard nor this process waits for that.
	if err := unix.SetNonblock(files[2], true); err != nil {
		report(files[2], Event{Kind: Failed, Step: StepMonitor, Errno: errnoOf(err)})
	}
	s.start(job, files[1:])
}

// optional is the number of descriptors behind the fixed ones.
func (j *Job) optional() int {
	n := j.Cgroups
	if j.Landlock {
		n++
	}
	if j.Into {
		n++
	}
	if j.Wrapper != nil {
		n += wrapFiles
	}
	return n
}

func rights(oob []byte) (files []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		files = append(files, fds...)
	}
	return files, nil
}

// maxJob caps what is read; arguments and environment of a payload are limited by the kernel to less.
const maxJob = 16 << 20

func readJob(fd int) (*Job, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "job")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxJob))
	if err != nil {
		return nil, err
	}
	return decodeJob(data)
}
