// SPDX-License-Identifier: Apache-2.0

package seccomp

import "runtime"

// Attack is one call that the list must refuse when a real kernel is asked.
type Attack struct {
	Name string
	Nr   uint32
	Args [6]uint64
	Want Answer
}

// Attacks returns, for every row of the list that this architecture has, arguments that meet the row's condition. What
// the condition leaves open is all ones, so that the kernel would find nothing to do if the filter let the call pass;
// upper halves that the condition does not look at are rubbish too.
func Attacks(o Options) []Attack {
	a := amd64
	if runtime.GOARCH == arm64.name {
		a = arm64
	}
	var all []Attack
	for _, r := range rules(o) {
		for _, name := range r.names {
			nr, _ := a.number(name)
			if nr == none {
				continue
			}
			all = append(all, Attack{Name: name, Nr: nr, Args: meeting(r.when), Want: r.answer})
		}
	}
	return all
}

func meeting(tests []test) [6]uint64 {
	ones := ^uint64(0)
	args := [6]uint64{ones, ones, ones, ones, ones, ones}
	for _, t := range tests {
		if t.not { // all ones is no value of the list
			continue
		}
		if t.high {
			args[t.arg] = uint64(t.values[0])<<32 | uint64(uint32(args[t.arg]))
		} else {
			args[t.arg] = args[t.arg]&^0xffffffff | uint64(t.values[0])
		}
	}
	return args
}
