// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
)

// stdio holds both ends of the payload's streams.
type stdio struct {
	payload [3]int   // the payload's ends
	stdin   *os.File // our end; nil: empty
	outputs [2]*os.File
	totals  [2]atomic.Int64
	over    chan struct{} // a stream passed its limit
	cancel  chan struct{}
	spent   chan struct{} // the host says that the CPU time is used up
	pumps   sync.WaitGroup
}

// openStdio makes the pipes. The payload must own them, or it could not open /dev/stdout.
func (r *run) openStdio() error {
	r.over, r.cancel, r.spent = make(chan struct{}, 2), make(chan struct{}, 1), make(chan struct{}, 1)
	var err error
	if r.job.Stdin {
		if r.payload[0], r.stdin, err = r.pipe(0); err != nil {
			return err
		}
	} else if r.payload[0], err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	for i := range r.outputs {
		if r.payload[1+i], r.outputs[i], err = r.pipe(1); err != nil {
			return err
		}
	}
	return nil
}

// pipe returns the payload's end, which is the one with that index, and ours. Only ours may not block: the mode belongs to
// the end and would be the payload's too.
func (r *run) pipe(theirs int) (int, *os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, err
	}
	if err := unix.Fchown(fds[theirs], r.open.UID, r.open.GID); err != nil {
		return 0, nil, err
	}
	if err := unix.SetNonblock(fds[1-theirs], true); err != nil {
		return 0, nil, err
	}
	return fds[theirs], os.NewFile(uintptr(fds[1-theirs]), "payload"), nil
}

func (r *run) closePayload() {
	for _, fd := range r.payload {
		unix.Close(fd)
	}
}

// pump passes the output on as it comes.
func (r *run) pump() {
	for i, kind := range []stream.Kind{stream.KindStdout, stream.KindStderr} {
		r.pumps.Go(func() {
			defer r.outputs[i].Close()
			buf := make([]byte, stream.MaxRecord)
			for {
				n, err := r.outputs[i].Read(buf)
				if n > 0 && !r.forward(i, kind, buf[:n]) || err != nil {
					return
				}
			}
		})
	}
}

// forward sends what the limit allows and one byte more, by which the host sees for itself that it was passed. The rest is
// read and counted, so that the payload does not block in a write.
func (r *run) forward(i int, kind stream.Kind, p []byte) bool {
	before := r.totals[i].Load()
	after := r.totals[i].Add(int64(len(p)))
	if after > r.job.Output && before <= r.job.Output {
		r.over <- struct{}{}
	}
	allowed := min(int64(len(p)), r.job.Output+1-before)
	return allowed <= 0 || r.out.Send(kind, p[:allowed]) == nil
}

// drained waits for the end of the streams, which nobody holds open any more.
func (r *run) drained() {
	r.pumps.Wait()
	if r.stdin != nil {
		r.stdin.Close()
	}
}

// listen reads what else the host says. When it lets go, or is dead, everything here ends at once, the payload too.
func (r *run) listen() {
	if r.hears {
		return
	}
	r.hears = true
	feed := make(chan []byte, stream.InitialCredit)
	if r.stdin != nil {
		go r.feed(feed)
	}
	go func() { exit(status(r.hear(feed))) }()
}

func (r *run) hear(feed chan<- []byte) error {
	ended := !r.job.Stdin
	for {
		kind, data, err := r.in.Next()
		switch {
		case err != nil:
			return err
		case kind == stream.KindExit:
			return io.EOF
		case kind == stream.KindCancel:
			tell(r.cancel)
		case kind == stream.KindSpent:
			tell(r.spent)
		case kind == stream.KindTree && r.pid == 0: // of a job that was refused
		case kind == stream.KindStdin && !ended:
			select {
			case feed <- append([]byte(nil), data...):
			default:
				if r.stdin != nil {
					return fmt.Errorf("%w: more input than there is credit for", stream.ErrProtocol)
				}
			}
		case kind == stream.KindStdinEnd && !ended:
			ended = true
			close(feed)
		default:
			return fmt.Errorf("%w: kind %d", stream.ErrProtocol, kind)
		}
	}
}

// tell sends a word that counts once.
func tell(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// feed writes the payload's input. A payload that does not want it gives no credit for more.
func (r *run) feed(chunks <-chan []byte) {
	defer r.stdin.Close()
	for p := range chunks {
		if _, err := r.stdin.Write(p); err != nil {
			return
		}
		if r.out.Send(stream.KindCredit, nil) != nil {
			return
		}
	}
}
