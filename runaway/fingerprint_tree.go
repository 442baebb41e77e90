// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"go/format"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// What FingerprintTree reads at most. A variant is somebody else's, and must not be able to keep the host busy.
const (
	maxTreeEntries = 200_000
	maxTreeBytes   = 2 << 30
	maxTreeDepth   = 128     // each level holds a descriptor
	maxFormatted   = 4 << 20 // larger Go files are taken as they are
	binaryPeek     = 8000    // a NUL byte in so many makes a file binary, as in git
)

// FingerprintTree identifies what is in a directory: names, contents and the targets of links. Not taken into account
// are what does not change a program: \r\n against \n in texts, how a Go file is formatted, modes, owners, times,
// empty directories, and every entry called ".git". Comments are, and so is everything else.
//
// Links are never followed. What is neither file, directory nor link is refused, as is a tree of more than 200,000
// entries, 2 GiB or 128 levels, or one in which a file is replaced meanwhile: such errors match ErrNoFingerprint.
func FingerprintTree(ctx context.Context, dir string) (Fingerprint, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("%w: %w", ErrNoFingerprint, err)
	}
	defer root.Close()
	w := treeWalk{hash: sha256.New(), bytesLeft: maxTreeBytes}
	if err := w.dir(ctx, root, ".", 0); err != nil {
		return Fingerprint{}, fmt.Errorf("%w: %w", ErrNoFingerprint, err)
	}
	return Fingerprint(w.hash.Sum(nil)), nil
}

type treeWalk struct {
	hash      hash.Hash
	entries   int
	bytesLeft int64
}

// dir takes the entries of a directory in the order of their names.
func (w *treeWalk) dir(ctx context.Context, root *os.Root, at string, depth int) error {
	if depth > maxTreeDepth {
		return fmt.Errorf("%q is more than %d levels deep", at, maxTreeDepth)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if e.Name() == ".git" {
			continue
		}
		if w.entries++; w.entries > maxTreeEntries {
			return fmt.Errorf("more than %d entries", maxTreeEntries)
		}
		if err := w.entry(ctx, root, e.Name(), path.Join(at, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *treeWalk) entry(ctx context.Context, root *os.Root, name, at string, depth int) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		sub, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		if opened, err := sub.Stat("."); err != nil || !os.SameFile(opened, info) {
			return replaced(at, err)
		}
		return w.dir(ctx, sub, at, depth+1)
	case fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		w.add('l', at, sha256.Sum256([]byte(target)))
		return nil
	case 0:
		return w.file(root, name, at, info)
	}
	return fmt.Errorf("%q is neither file, directory nor link", at)
}

func replaced(at string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%q was replaced while it was read", at)
}

// add takes one entry. Lengths go before texts, so that no two trees give the same bytes.
func (w *treeWalk) add(kind byte, at string, content Fingerprint) {
	head := binary.AppendUvarint([]byte{kind}, uint64(len(at)))
	w.hash.Write(append(append(head, at...), content[:]...))
}

func (w *treeWalk) file(root *os.Root, name, at string, info fs.FileInfo) error {
	// What was a file a moment ago may be a pipe by now: it is opened without waiting, and compared.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) || !opened.Mode().IsRegular() {
		return replaced(at, err)
	}
	counted := &io.LimitedReader{R: f, N: w.bytesLeft + 1}
	content, err := hashContent(counted, strings.HasSuffix(name, ".go") && info.Size() <= maxFormatted)
	if err != nil {
		return err
	}
	if w.bytesLeft = counted.N - 1; w.bytesLeft < 0 {
		return fmt.Errorf("more than %d bytes", int64(maxTreeBytes))
	}
	w.add('f', at, content)
	return nil
}

// hashContent hashes a file with normalised line ends, and as gofmt would write it if it is Go and can be parsed.
func hashContent(r io.Reader, isGo bool) (sum Fingerprint, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	begin, err := in.Peek(binaryPeek)
	if err != nil && err != io.EOF {
		return sum, err
	}
	h := sha256.New()
	switch {
	case bytes.IndexByte(begin, 0) >= 0:
		_, err = io.Copy(h, in)
	case isGo:
		var source bytes.Buffer
		if err = copyLF(&source, io.LimitReader(in, maxFormatted+1)); err != nil {
			return sum, err
		}
		text := source.Bytes()
		if formatted, formatErr := format.Source(text); formatErr == nil {
			text = formatted
		}
		h.Write(text)
		err = copyLF(h, in) // if it has grown meanwhile
	default:
		err = copyLF(h, in)
	}
	return Fingerprint(h.Sum(nil)), err
}

// copyLF copies with \n in the place of \r\n.
func copyLF(w io.Writer, r io.Reader) error {
	buf := make([]byte, 0, 64<<10)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		keep := 0
		if err == nil && len(buf) > 0 && buf[len(buf)-1] == '\r' {
			keep = 1 // its \n may come with the next read
		}
		if _, writeErr := w.Write(bytes.ReplaceAll(buf[:len(buf)-keep], []byte("\r\n"),
			[]byte("\n"))); writeErr != nil {
			return writeErr
		}
		buf = append(buf[:0], buf[len(buf)-keep:]...)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
