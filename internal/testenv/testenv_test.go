// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// recorder is a testing.TB that keeps what Need says instead of acting on the running test. Methods that end a test end
// the goroutine, as the real ones do. Everything else would call the nil TB and panic: Need must not use it.
type recorder struct {
	testing.TB
	fatal, skip string
	attrs       map[string]string
}

func (r *recorder) Helper()              {}
func (r *recorder) Attr(key, val string) { r.attrs[key] = val }
func (r *recorder) Fatal(args ...any)    { r.fatal = text(args...); runtime.Goexit() }
func (r *recorder) Skip(args ...any)     { r.skip = text(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = format
	r.Fatal(append([]any{format}, args...)...)
}

func text(args ...any) string {
	var b strings.Builder
	for _, a := range args {
		switch a := a.(type) {
		case string:
			b.WriteString(a)
		case error:
			b.WriteString(a.Error())
		case []string:
			b.WriteString(strings.Join(a, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func record(f func(testing.TB)) *recorder {
	r := &recorder{attrs: map[string]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// withTable replaces the table by components whose answers the test knows.
func withTable(t *testing.T, components map[string]component) {
	t.Helper()
	saved := table
	table = components
	t.Cleanup(func() { table = saved })
}

func fixed(demandedBy func(int) bool, err error) component {
	return component{demandedBy, func() error { return err }, "ask the host"}
}

func TestNeed(t *testing.T) {
	absent := errors.New("not on this host")
	withTable(t, map[string]component{
		"here":     fixed(everybody, nil),
		"gone":     fixed(everybody, absent),
		"optional": fixed(nobodyUnlessNamed, absent),
		"me":       fixed(func(uid int) bool { return (uid == 0) == (os.Getuid() == 0) }, absent),
		"others":   fixed(func(uid int) bool { return (uid == 0) != (os.Getuid() == 0) }, absent),
	})
	const met, skipped, failed = "met", "skipped", "failed"
	for _, c := range []struct{ component, require, want string }{
		{"here", "", met},
		{"here", "all", met},
		{"gone", "", skipped},
		{"gone", " , ,", skipped},
		{"gone", "here", skipped},
		{"gone", "here, gone", failed},
		{"gone", "all", failed},
		{"gone", "here,all", failed},
		{"optional", "all", skipped},
		{"optional", "optional", failed},
		{"me", "all", failed},
		{"others", "all", skipped},
		{"others", "all,others", failed},
		{"no-such", "", failed},
		{"here", "gone,no-such", failed},
		{"here", "ALL", failed},
		{"here", "none", failed},
	} {
		t.Run(c.component+" under "+c.require, func(t *testing.T) {
			t.Setenv(RequireVariable, c.require)
			r := record(func(tb testing.TB) { Need(tb, c.component) })
			got := met
			switch {
			case r.fatal != "":
				got = failed
			case r.skip != "":
				got = skipped
			}
			if got != c.want {
				t.Errorf("got %s, want %s (fatal %q, skip %q)", got, c.want, r.fatal, r.skip)
			}
			if (r.attrs["need."+c.component] == attrMet) != (c.want == met) {
				t.Errorf("attributes %v do not match the outcome %s", r.attrs, c.want)
			}
			if optional := r.attrs["need."+c.component] == attrMissingOptional; optional && c.component != "optional" {
				t.Errorf("attributes %v call %s optional", r.attrs, c.component)
			}
		})
	}
}

func TestMessagesNameComponentReasonAndWayOut(t *testing.T) {
	withTable(t, map[string]component{"gone": fixed(everybody, errors.New("not on this host"))})
	for _, require := range []string{"", "all"} {
		t.Setenv(RequireVariable, require)
		r := record(func(tb testing.TB) { Need(tb, "gone") })
		for _, part := range []string{`"gone"`, "not on this host", "ask the host"} {
			if !strings.Contains(r.fatal+r.skip, part) {
				t.Errorf("with %q the message lacks %q: %s", require, part, r.fatal+r.skip)
			}
		}
	}
}

// TestStricterOnly adds names to the variable one by one: no addition may turn a failure into anything milder.
func TestStricterOnly(t *testing.T) {
	names := append(Components(), "all")
	for _, uid := range []int{0, 1000} {
		for _, base := range names {
			for _, more := range names {
				a, errA := parseRequire(base)
				b, errB := parseRequire(base + "," + more)
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				for name, c := range table {
					if a.demands(name, c, uid) && !b.demands(name, c, uid) {
						t.Errorf("uid %d: %q demands %s, %q does not", uid, base, name, base+","+more)
					}
				}
			}
		}
	}
}

// TestAllIsSatisfiable: the identities exclude each other, so "all" must never ask one caller for both.
func TestAllIsSatisfiable(t *testing.T) {
	all, err := parseRequire("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{0, 65534} {
		root, ordinary := all.demands("root", table["root"], uid), all.demands("unprivileged", table["unprivileged"], uid)
		if root != (uid == 0) || ordinary == root {
			t.Errorf("uid %d: all demands root %v and unprivileged %v", uid, root, ordinary)
		}
	}
}

func TestTableIsComplete(t *testing.T) {
	for name, c := range table {
		if c.demandedBy == nil || c.probe == nil || c.get == "" {
			t.Errorf("component %q lacks a rule, a probe or the way to get it", name)
		}
		if strings.ContainsAny(name, ", \t") {
			t.Errorf("component %q cannot stand in a comma-separated list or in an attribute", name)
		}
	}
	if names := Components(); !slices.IsSorted(names) || len(names) != len(table) {
		t.Errorf("Components() = %v", names)
	}
}
