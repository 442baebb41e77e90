// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"io"
)

// scanner verifies a file line by line.
type scanner struct {
	cfg    Config
	op     string
	lines  *bufio.Reader
	header Header
	head   Head
	line   int   // number of the last line that was read
	end    int64 // where it ends
	torn   int64 // bytes behind the last line end, once everything was read
}

// newScanner verifies the header of the first size bytes of f.
func newScanner(cfg Config, op string, f File, size int64) (*scanner, error) {
	// The buffer is full exactly when a line is longer than a record can be: a shorter file never fills its own.
	buffer := int(min(MaxRecord, size+1))
	s := &scanner{cfg: cfg, op: op, lines: bufio.NewReaderSize(io.NewSectionReader(f, 0, size), buffer), line: 1}
	line, err := s.firstLine()
	if err != nil {
		return nil, err
	}
	header, rule := parseHeader(line, cfg.Kind, cfg.ID)
	if rule != "" {
		return nil, s.corrupt(rule)
	}
	s.header, s.head, s.end = header, headAt(header.Seq, line), int64(len(line))
	return s, nil
}

// firstLine may be longer than others, and there is nothing to go back to if it is torn.
func (s *scanner) firstLine() ([]byte, error) {
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, s.corrupt("the header is incomplete")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, s.failed(err)
		case len(line) > MaxHeader:
			return nil, s.corrupt("the header is longer than any can be")
		}
	}
}

// next returns the next record. At the end of the last whole line it returns io.EOF, and torn is valid.
func (s *scanner) next() (Record, error) {
	line, err := s.lines.ReadSlice('\n')
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		return Record{}, s.tail(line)
	case errors.Is(err, bufio.ErrBufferFull):
		s.line++
		return Record{}, s.corrupt("it is longer than any record can be")
	default:
		return Record{}, s.failed(err)
	}
	s.line++
	rec, rule := parseLine(line, s.head.Seq+1, s.head.Hash)
	if rule != "" {
		return Record{}, s.corrupt(rule)
	}
	s.head = Head{Seq: rec.Seq, Hash: rec.Hash}
	s.end += int64(len(line))
	return rec, nil
}

// tail judges what has no line end: a write that was under way, or damage.
func (s *scanner) tail(tail []byte) error {
	if len(tail) > 0 && holdsRecord(tail, s.head.Seq+1, s.head.Hash) {
		s.line++
		return s.corrupt("a whole record is not followed by a line end")
	}
	s.torn = int64(len(tail))
	return io.EOF
}

func (s *scanner) corrupt(rule string) error {
	return &Error{
		Op: s.op, Path: s.cfg.path(suffixJournal), Line: s.line, Rule: rule, Kind: ErrCorrupt,
		Fix: "look at what happened to it; then " + fixRestore,
	}
}

func (s *scanner) failed(err error) error {
	return &Error{Op: s.op, Path: s.cfg.path(suffixJournal), Rule: "it cannot be read", Kind: ErrIO, Err: err}
}

// drain reads to the end and returns how many records there were.
func (s *scanner) drain() (records int, err error) {
	for {
		if _, err = s.next(); err != nil {
			break
		}
		records++
	}
	if err == io.EOF {
		err = nil
	}
	return records, err
}
