// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrTampered matches every *TamperError.
var ErrTampered = errors.New("the tree was tampered with")

// TamperError names what changed without permission, sorted.
type TamperError struct {
	Added, Removed []string
	Changed        []string // content, permissions, owner, link count, or where a link leads
	Retyped        []string // of another type than before
}

// Error lists at most 20 names.
func (e *TamperError) Error() string {
	var b strings.Builder
	b.WriteString("allowlist: " + ErrTampered.Error())
	left := maxPrinted
	for _, list := range []struct {
		what  string
		names []string
	}{{"added", e.Added}, {"removed", e.Removed}, {"changed", e.Changed}, {"changed in type", e.Retyped}} {
		for i, name := range list.names {
			if left == 0 {
				fmt.Fprintf(&b, "\n  and %d more %s", len(list.names)-i, list.what)
				break
			}
			left--
			fmt.Fprintf(&b, "\n  %s: %+q", list.what, name)
		}
	}
	return b.String()
}

// Unwrap returns ErrTampered.
func (e *TamperError) Unwrap() error { return ErrTampered }

func note(list *[]string, path string) { *list = append(*list, path) }

// each calls f for the address of every list.
func (e *TamperError) each(f func(list *[]string)) {
	for _, list := range []*[]string{&e.Added, &e.Removed, &e.Changed, &e.Retyped} {
		f(list)
	}
}

// without drops the names for which excused is true.
func (e *TamperError) without(excused func(path string) bool) *TamperError {
	e.each(func(list *[]string) { *list = slices.DeleteFunc(*list, excused) })
	return e
}

// orNil is the error, or nil (of type error) if nothing is left.
func (e *TamperError) orNil() error {
	total := 0
	e.each(func(list *[]string) {
		slices.Sort(*list)
		if *list = slices.Compact(*list); len(*list) == 0 {
			*list = nil
		}
		total += len(*list)
	})
	if total == 0 {
		return nil
	}
	return e
}

// compare lists what differs.
func (m *Manifest) compare(after *Manifest) *TamperError {
	e := &TamperError{}
	for path, was := range m.records {
		is, ok := after.records[path]
		switch {
		case !ok:
			note(&e.Removed, path)
		case was.kind != is.kind:
			note(&e.Retyped, path)
		case was.compared(m.hashed) != is.compared(m.hashed):
			note(&e.Changed, path)
		}
	}
	for path := range maps.Keys(after.records) {
		if _, ok := m.records[path]; !ok {
			note(&e.Added, path)
		}
	}
	return e
}
