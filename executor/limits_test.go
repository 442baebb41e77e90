// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
)

// eachLimit calls f for every field of Limits, so that a new one cannot be forgotten anywhere.
func eachLimit(f func(i int, name string)) {
	for i := range reflect.TypeFor[executor.Limits]().NumField() {
		f(i, reflect.TypeFor[executor.Limits]().Field(i).Name)
	}
}

// set gives one field a value of its own type.
func set(l *executor.Limits, i int, v float64) {
	field := reflect.ValueOf(l).Elem().Field(i)
	if field.CanFloat() {
		field.SetFloat(v)
	} else {
		field.SetInt(int64(v))
	}
}

func get(l executor.Limits, i int) float64 {
	field := reflect.ValueOf(l).Field(i)
	if field.CanFloat() {
		return field.Float()
	}
	return float64(field.Int())
}

// No limit may be off by default, and none is so large that it might as well be.
func TestDefaultsAreFinite(t *testing.T) {
	t.Parallel()
	eachLimit(func(i int, name string) {
		if v := get(executor.DefaultLimits(), i); !(v > 0 && v < math.MaxInt64/1e6) {
			t.Errorf("%s is %v by default", name, v)
		}
	})
	s := valid(t)
	s.Limits = executor.DefaultLimits()
	if err := s.Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	defaults := executor.DefaultLimits()
	if diff := cmp.Diff(defaults, executor.Limits{}.WithDefaults()); diff != "" {
		t.Errorf("zero limits (-want +got):\n%s", diff)
	}
	eachLimit(func(i int, name string) {
		var l executor.Limits
		set(&l, i, 77)
		want := defaults
		set(&want, i, 77)
		got := l.WithDefaults()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("only %s set (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(got, got.WithDefaults()); diff != "" {
			t.Errorf("%s: a second time changes more:\n%s", name, diff)
		}
	})
}

func TestNegativeLimits(t *testing.T) {
	t.Parallel()
	eachLimit(func(i int, name string) {
		s := valid(t)
		set(&s.Limits, i, -1)
		if diff := cmp.Diff([]string{"Limits." + name}, fields(t, s)); diff != "" {
			t.Errorf("%s is negative (-want +got):\n%s", name, diff)
		}
		// WithDefaults must not turn a mistake into a default.
		if get(s.Limits.WithDefaults(), i) != -1 {
			t.Errorf("%s: a negative value was replaced", name)
		}
	})
}
