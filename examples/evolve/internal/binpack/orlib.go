// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Read accepts at most. The largest file of the OR-library has 20 instances of 1,000 items.
const (
	MaxInstances = 1000
	MaxItems     = 1_000_000 // in a file
	MaxCapacity  = 1_000_000 // after scaling
	maxName      = 64
	maxLine      = 4096
	maxDecimals  = 3
)

// FormatError says where a file is not what the format asks for.
type FormatError struct {
	Line int // from 1; of the field, or of the end of the file
	Rule string
}

// Error names the line and the rule.
func (e *FormatError) Error() string { return fmt.Sprintf("binpack: line %d: %s", e.Line, e.Rule) }

// Read reads the format of the OR-library's bin packing files: the number of instances, and for each of them a name,
// the capacity, the number of items and the best known number of bins, and the sizes. White space separates fields.
// Decimals are scaled to whole numbers. The file may be anybody's, so everything in it is bounded, and a size that
// does not fit into a bin, a field too many or a field too few is an error.
func Read(r io.Reader) ([]Instance, error) {
	s := &scanner{lines: bufio.NewScanner(io.LimitReader(r, 64<<20))}
	s.lines.Buffer(make([]byte, maxLine), maxLine)
	count := s.whole("number of instances", 1, MaxInstances)
	var all []Instance
	left := MaxItems
	for range count {
		all = append(all, s.instance(&left))
		if s.err != nil {
			return nil, s.err
		}
	}
	if field, ok := s.next(); ok {
		s.fail("%.20q stands after the last instance", field)
	}
	if s.err != nil {
		return nil, s.err
	}
	return all, nil
}

// scanner yields fields. Its first error stands, and every later call gives nothing.
type scanner struct {
	lines  *bufio.Scanner
	line   int
	fields []string
	err    error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = &FormatError{Line: s.line, Rule: fmt.Sprintf(format, args...)}
	}
}

func (s *scanner) next() (string, bool) {
	for s.err == nil && len(s.fields) == 0 {
		if !s.lines.Scan() {
			if err := s.lines.Err(); err != nil {
				s.line++
				s.fail("%v", err)
			}
			return "", false
		}
		s.line++
		s.fields = strings.Fields(s.lines.Text())
	}
	if s.err != nil {
		return "", false
	}
	field := s.fields[0]
	s.fields = s.fields[1:]
	return field, true
}

// decimal reads a number as units of 1/scale, of which it says the scale.
func (s *scanner) decimal(what string) (value, scale int) {
	field, ok := s.next()
	if !ok {
		s.fail("the file ends where %s should stand", what)
		return 0, 1
	}
	whole, fraction, _ := strings.Cut(field, ".")
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > maxDecimals || len(whole) > 9 || len(whole) == 0 || !digits(whole+fraction) {
		s.fail("%s is %.20q; it must be a positive number with at most %d decimals", what, field, maxDecimals)
		return 0, 1
	}
	scale = 1
	for range fraction {
		scale *= 10
	}
	value, _ = strconv.Atoi(whole + fraction) // at most 12 digits
	return value, scale
}

func digits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func (s *scanner) whole(what string, least, most int) int {
	value, scale := s.decimal(what)
	if s.err == nil && (scale != 1 || value < least || value > most) {
		s.fail("%s must be a whole number from %d to %d", what, least, most)
	}
	return value
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func (s *scanner) name() string {
	field, ok := s.next()
	switch {
	case !ok:
		s.fail("the file ends where the name of an instance should stand")
	case len(field) > maxName || !utf8.ValidString(field) || strings.ContainsFunc(field, unprintable):
		s.fail("%.20q is no name of an instance: at most %d printable bytes", field, maxName)
	}
	return field
}

func (s *scanner) instance(left *int) Instance {
	in := Instance{Name: s.name(), Scale: 1}
	type number struct{ value, scale int }
	var capacity number
	capacity.value, capacity.scale = s.decimal("the capacity of " + in.Name)
	n := s.whole("the number of items of "+in.Name, 1, *left)
	in.Best = s.whole("the best known number of bins of "+in.Name, 0, MaxItems)
	if s.err != nil {
		return in
	}
	*left -= n
	var sizes []number // grows with what is there, not with what is announced
	in.Scale = capacity.scale
	for range n {
		var size number
		size.value, size.scale = s.decimal("a size of " + in.Name)
		if s.err == nil && (size.value == 0 || size.value*capacity.scale > capacity.value*size.scale) {
			s.fail("a size of %s is not between 0 and the capacity", in.Name)
		}
		if s.err != nil {
			return in
		}
		in.Scale = max(in.Scale, size.scale)
		sizes = append(sizes, size)
	}
	in.Capacity = capacity.value * (in.Scale / capacity.scale)
	if in.Capacity > MaxCapacity {
		s.fail("the capacity of %s is more than %d", in.Name, MaxCapacity)
		return in
	}
	in.Items = make([]int, len(sizes))
	for i, size := range sizes {
		in.Items[i] = size.value * (in.Scale / size.scale)
	}
	return in
}

// Write writes what Read reads.
func Write(w io.Writer, instances []Instance) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d\n", len(instances))
	for _, in := range instances {
		fmt.Fprintf(b, "%s\n%s %d %d\n", in.Name, in.decimal(in.Capacity), len(in.Items), in.Best)
		for _, item := range in.Items {
			fmt.Fprintln(b, in.decimal(item))
		}
	}
	return b.Flush()
}

func (in *Instance) decimal(value int) string {
	if in.Scale <= 1 {
		return strconv.Itoa(value)
	}
	return strconv.FormatFloat(float64(value)/float64(in.Scale), 'f', -1, 64)
}
