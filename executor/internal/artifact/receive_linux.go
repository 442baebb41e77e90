// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
)

// ErrStream: what was received breaks the request: the sender cannot be trusted.
var ErrStream = errors.New("artifact: the stream breaks its rules")

// Receive writes what [Send] sent. The sender may be hostile: every rule of the request is applied once more, but for those
// that only the file system there can answer (links, kinds, link counts). A stream that breaks a rule, or ends too early,
// is an [ErrStream]. Root of the request is not used. What was written before an error is returned beside it.
func Receive(ctx context.Context, r Request, in io.Reader) ([]executor.Artifact, []executor.Refusal, error) {
	if err := r.check(false, true); err != nil {
		return nil, nil, err
	}
	d, err := openDest(r.Dest, r.ID)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	c := &receiver{
		req: &r, sel: r.selector(), dest: d, in: bufio.NewReaderSize(in, 32<<10),
		left: r.MaxBytes, work: 3 * min(r.MaxBytes, math.MaxInt64/3), taken: map[string]bool{},
	}
	for {
		if err = context.Cause(ctx); err != nil {
			break
		}
		var done bool
		if done, err = c.item(); done || err != nil {
			break
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = fmt.Errorf("%w: it ends too early", ErrStream)
	}
	artifacts, refusals := c.all()
	return artifacts, refusals, err
}

// receiver is one call of Receive.
type receiver struct {
	results
	req   *Request
	sel   *selector
	dest  *dest
	in    *bufio.Reader
	left  int64 // bytes that may still be taken
	work  int64 // bytes that may still come: files that are dropped in the middle count here only
	taken map[string]bool
	buf   []byte
}

func (c *receiver) item() (done bool, err error) {
	kind, err := c.in.ReadByte()
	switch {
	case err != nil:
		return false, err
	case kind == itemEnd && c.in.Buffered() > 0:
		return false, fmt.Errorf("%w: %d bytes behind its end", ErrStream, c.in.Buffered())
	case kind == itemEnd:
		return true, nil
	}
	switch kind {
	case itemFile:
		p, err := c.text(maxPath)
		if err == nil {
			err = c.file(p)
		}
		return false, err
	case itemRefusal:
		p, err := c.text(maxText)
		if err != nil {
			return false, err
		}
		reason, err := c.text(maxText)
		if err == nil && len(c.refusals)+c.more > 2*maxRefusals {
			err = fmt.Errorf("%w: more than %d refusals", ErrStream, 2*maxRefusals)
		}
		if err == nil {
			c.refuse(p, "%s", printable(reason))
		}
		return false, err
	}
	return false, fmt.Errorf("%w: item %q", ErrStream, kind)
}

func (c *receiver) number(limit int64) (int64, error) {
	n, err := binary.ReadUvarint(c.in)
	switch {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return 0, err
	case err != nil, n > uint64(limit):
		return 0, fmt.Errorf("%w: number %d (%v)", ErrStream, n, err)
	}
	return int64(n), nil
}

func (c *receiver) text(limit int64) (string, error) {
	n, err := c.number(limit)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if _, err := io.CopyN(&b, c.in, n); err != nil { // it grows with what is there
		return "", err
	}
	return b.String(), nil
}

// printable makes a reason fit for a log. Paths stay what they are, as in Extract.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// admit is the request's word on a path.
func (c *receiver) admit(p string) error {
	depth := components(p)
	switch {
	case !local(p) || path.Clean(p) != p || p == ".":
		return fmt.Errorf("%w: %q is no path below the workspace", ErrStream, p)
	case depth > executor.ArtifactDepth:
		return fmt.Errorf("%w: %q is deeper than %d components", ErrStream, p, executor.ArtifactDepth)
	case c.sel.barred(p) != "":
		return fmt.Errorf("%w: %q: %s", ErrStream, p, c.sel.barred(p))
	case !c.sel.match(p) && !slices.Contains(c.sel.literals, p):
		return fmt.Errorf("%w: %q was not declared", ErrStream, p)
	case c.taken[p]:
		return fmt.Errorf("%w: %q came twice", ErrStream, p)
	case len(c.taken) >= c.req.MaxFiles+maxRefusals: // those that were dropped count as well
		return fmt.Errorf("%w: more than %d files", ErrStream, c.req.MaxFiles)
	}
	c.taken[p] = true
	return nil
}

// file takes one file. What the destination does not take is a refusal, as in Extract, and its content is passed over.
func (c *receiver) file(p string) error {
	if err := c.admit(p); err != nil {
		return err
	}
	mode, err := c.in.ReadByte()
	if err != nil {
		return err
	}
	if mode > 1 || len(c.artifacts) >= c.req.MaxFiles {
		return fmt.Errorf("%w: %q: mode %d, %d files before it", ErrStream, p, mode, len(c.artifacts))
	}
	out, err := c.dest.create(p, mode == 1)
	bad := badPlace(p, err)
	if err != nil && !bad {
		return fmt.Errorf("artifact: %q: %w", p, err)
	}
	if bad {
		c.refuse(p, "%v", err)
		out = nowhere{}
	}
	left := c.left
	a, complete, err := c.segments(out)
	if err != nil || !complete {
		c.left = left
		return errors.Join(err, out.drop())
	}
	if err := out.place(); badPlace(p, err) {
		c.refuse(p, "%v", err)
		return nil
	} else if err != nil {
		return fmt.Errorf("artifact: %q: %w", p, err)
	}
	if !bad {
		a.Path, a.Executable = p, mode == 1
		c.artifacts = append(c.artifacts, a)
	}
	return nil
}

// badPlace reports whether an error of the destination concerns this name only.
func badPlace(p string, err error) bool {
	return errors.Is(err, errBadPlace) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.EILSEQ) || err != nil && !utf8.ValidString(p)
}

// segments writes the content, up to the word on whether it is complete.
func (c *receiver) segments(out output) (a executor.Artifact, complete bool, err error) {
	sum, off, hole := sha256.New(), int64(0), false
	for {
		kind, err := c.in.ReadByte()
		switch {
		case err != nil:
			return a, false, err
		case kind == segmentDrop:
			return a, false, nil
		case kind == segmentPlace:
			if hole {
				err = out.Truncate(off)
			}
			a.Size, a.SHA256 = off, hex.EncodeToString(sum.Sum(nil))
			return a, true, err
		}
		n, err := c.number(math.MaxInt64)
		if err != nil {
			return a, false, err
		}
		c.left -= n
		if c.work -= n; c.left < 0 || c.work < 0 {
			return a, false, fmt.Errorf("%w: more than %d bytes", ErrStream, c.req.MaxBytes)
		}
		switch {
		case kind == segmentHole:
			zeros(sum, n)
		case kind == segmentData && n <= maxSegment:
			err = c.data(out, sum, off, int(n))
		default:
			err = fmt.Errorf("%w: segment %q of %d bytes", ErrStream, kind, n)
		}
		if err != nil {
			return a, false, err
		}
		off, hole = off+n, kind == segmentHole
	}
}

func (c *receiver) data(out output, sum hash.Hash, off int64, n int) error {
	if c.buf == nil {
		c.buf = make([]byte, maxSegment)
	}
	if _, err := io.ReadFull(c.in, c.buf[:n]); err != nil {
		return err
	}
	sum.Write(c.buf[:n])
	_, err := out.WriteAt(c.buf[:n], off)
	return err
}

// zeros adds what a hole reads as.
func zeros(sum hash.Hash, n int64) {
	var block [4096]byte
	for n > 0 {
		k := min(n, int64(len(block)))
		sum.Write(block[:k])
		n -= k
	}
}

// nowhere takes the content of a file that is not kept.
type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nowhere) Truncate(int64) error                   { return nil }
func (nowhere) place() error                           { return nil }
func (nowhere) drop() error                            { return nil }
