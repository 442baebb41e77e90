// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"
	"strings"
)

// Answer is what the kernel returns instead of executing the call: an errno, or [KillProcess]. The numbers are those
// of Linux on amd64 and arm64, whatever system this package is compiled for.
type Answer uint32

// The answers in use.
const (
	EPERM           Answer = 1
	ENOMEM          Answer = 12
	ENOSYS          Answer = 38
	EPROTONOSUPPORT Answer = 93
	EAFNOSUPPORT    Answer = 97
	// KillProcess ends the whole process with SIGSYS.
	KillProcess Answer = 1 << 31
)

// String returns the name of the errno, or "SIGSYS".
func (a Answer) String() string {
	switch a {
	case EPERM:
		return "EPERM"
	case ENOMEM:
		return "ENOMEM"
	case ENOSYS:
		return "ENOSYS"
	case EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	case EAFNOSUPPORT:
		return "EAFNOSUPPORT"
	case KillProcess:
		return "SIGSYS"
	}
	return fmt.Sprintf("answer(%d)", uint32(a))
}

// rule refuses the calls it names if every test holds. The first rule of a call that matches decides; a call that no
// rule matches is allowed.
type rule struct {
	names  []string
	when   []test
	answer Answer
	reason string
}

// test looks at one 32-bit half of one argument: (half & mask) is, or with not is not, one of values. Arguments are 64
// bits wide in the filter's eyes; most calls take an int or unsigned int and ignore the upper half, so a test of the
// lower half alone is the exact one, and a comparison of all 64 bits would be passed by rubbish in the upper half.
type test struct {
	arg    uint32
	high   bool
	mask   uint32 // 0 means every bit
	not    bool
	values []uint32
}

// low is the lower half of an argument; is, isNot and hasAny finish the test.
func low(arg uint32) test  { return test{arg: arg} }
func high(arg uint32) test { return test{arg: arg, high: true} }

func (t test) masked(mask uint32) test    { t.mask = mask; return t }
func (t test) is(values ...uint32) test   { t.values = values; return t }
func (t test) isNot(v ...uint32) test     { t.not, t.values = true, v; return t }
func (t test) hasAny(mask uint32) test    { return t.masked(mask).isNot(0) }
func when(tests ...test) []test           { return tests }
func calls(names ...string) []string      { return slices.Clip(names) }
func (t test) matches(lo, hi uint32) bool { return t.not != slices.Contains(t.values, t.half(lo, hi)) }

func (t test) half(lo, hi uint32) uint32 {
	if t.high {
		lo = hi
	}
	if t.mask != 0 {
		lo &= t.mask
	}
	return lo
}

// String prints the test in the words of the filter: arg0 is the first argument, ".high" its upper half.
func (t test) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "arg%d", t.arg)
	if t.high {
		b.WriteString(".high")
	}
	if t.mask != 0 {
		fmt.Fprintf(&b, "&%#x", t.mask)
	}
	switch {
	case len(t.values) == 1 && t.not:
		b.WriteString(" != ")
	case len(t.values) == 1:
		b.WriteString(" == ")
	case t.not:
		b.WriteString(" not in ")
	default:
		b.WriteString(" in ")
	}
	for i, v := range t.values {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%#x", v)
	}
	return b.String()
}
