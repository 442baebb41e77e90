// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// Micro is money: millionths of the currency unit. It is an integer because a float64 that became NaN never reaches a
// limit, and because sums of small amounts must be exact.
type Micro int64

// String prints the amount in units of the currency, such as 1.250000.
func (m Micro) String() string {
	sign, abs := "", uint64(m)
	if m < 0 {
		sign, abs = "-", -abs
	}
	return fmt.Sprintf("%s%d.%06d", sign, abs/1e6, abs%1e6)
}

// Usage is what an iteration spent, or may spend. As a budget, a zero field allows nothing of that kind and NoLimit
// any amount.
type Usage struct {
	Tokens int64         `json:"tokens,omitempty"`
	Cost   Micro         `json:"cost,omitempty"`
	Calls  int64         `json:"calls,omitempty"` // to providers or tools: a meter that does not trust prices
	CPU    time.Duration `json:"cpu,omitempty"`   // nanoseconds in the journal
	// Unpriced says that the cost is not known. The iteration is then charged what was reserved for it, if that is
	// more. Refused in a budget.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Estimate is a Usage that is reserved and not yet spent.
type Estimate = Usage

// Meter says which fields of Usage the host promises to report. A limit without its meter never fires.
type Meter uint8

// The meters; join them with |.
const (
	MeterTokens Meter = 1 << iota
	MeterCost
	MeterCalls
	MeterCPU
	MeterAll = MeterTokens | MeterCost | MeterCalls | MeterCPU
)

// String names the meters, joined with "|"; "none" if there is none.
func (m Meter) String() string {
	var set []string
	for _, b := range budgets {
		if m&b.meter != 0 {
			set = append(set, b.name)
		}
	}
	if rest := m &^ MeterAll; rest != 0 {
		set = append(set, fmt.Sprintf("meter(%d)", uint8(rest)))
	}
	return cmp.Or(strings.Join(set, "|"), "none")
}

// amounts are the counted fields of a Usage in the order in which they stop a run. All arithmetic is done on them.
type amounts [4]int64

const (
	cost = iota
	tokens
	calls
	cpu
	kinds // how many
)

// budgets describes each field of amounts.
var budgets = [kinds]struct {
	name   string
	meter  Meter
	reason Reason
}{
	cost:   {"cost", MeterCost, ReasonCost},
	tokens: {"tokens", MeterTokens, ReasonTokens},
	calls:  {"calls", MeterCalls, ReasonCalls},
	cpu:    {"cpu", MeterCPU, ReasonCPU},
}

func (u Usage) amounts() amounts { return amounts{int64(u.Cost), u.Tokens, u.Calls, int64(u.CPU)} }

// negative reports whether an amount is below zero. As something spent it would be a refund.
func (u *Usage) negative() bool { return int64(u.Cost)|u.Tokens|u.Calls|int64(u.CPU) < 0 }

func (a amounts) usage() (u Usage) {
	a.putInto(&u)
	return u
}

// putInto sets the counted fields.
func (a *amounts) putInto(u *Usage) {
	u.Cost, u.Tokens, u.Calls, u.CPU = Micro(a[cost]), a[tokens], a[calls], time.Duration(a[cpu])
}

// format prints one field the way a person reads it.
func (a amounts) format(kind int) string {
	switch {
	case kind == cost:
		return Micro(a[kind]).String()
	case kind == cpu:
		return time.Duration(a[kind]).String()
	}
	return fmt.Sprint(a[kind])
}

func (a *amounts) isZero() bool { return a[cost]|a[tokens]|a[calls]|a[cpu] == 0 }

// add adds field by field. A sum that overflowed would look like a refund, so it stays at the largest number. Like the
// methods below it works in place: copies of arrays are what accounting would spend most of its time on.
func (a *amounts) add(b *amounts) {
	for i := range a {
		a[i] = add(a[i], b[i])
	}
}

// raise makes each field at least as large as that of b.
func (a *amounts) raise(b *amounts) {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
}

// exceeds reports whether a field is larger than that of b.
func (a *amounts) exceeds(b *amounts) bool {
	return a[cost] > b[cost] || a[tokens] > b[tokens] || a[calls] > b[calls] || a[cpu] > b[cpu]
}

// plus is the sum.
func (a amounts) plus(b amounts) amounts {
	a.add(&b)
	return a
}

// beyond is what a has more than b, field by field, and never below zero.
func (a amounts) beyond(b amounts) amounts {
	for i := range a {
		a[i] = max(0, a[i]-b[i])
	}
	return a
}

// atLeast is the larger of both, field by field.
func (a amounts) atLeast(b amounts) amounts {
	a.raise(&b)
	return a
}

// add is the sum of two numbers that are not negative, or the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
