// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
	"github.com/google/go-cmp/cmp"
)

// TestMemStoreKeepsEveryField: what the store in memory gives back is what it was given, in the same order, whichever
// fields are set. A field that is new to Record is tried as well.
func TestMemStoreKeepsEveryField(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	if err := s.Load(t.Context(), "r", nil); err == nil {
		t.Fatal("a new store holds something")
	}
	var want []runaway.Record
	var add func(field reflect.Value, r *runaway.Record)
	add = func(field reflect.Value, r *runaway.Record) {
		switch v := field.Addr().Interface().(type) {
		case *time.Time:
			*v = time.Date(2000, 1, 2, 3, 4, 5, 6, time.UTC)
		case *json.RawMessage:
			*v = json.RawMessage(`{}`)
		case *runaway.Fingerprint:
			v[31] = 1
		case **runaway.Limits:
			*v = &runaway.Limits{Iterations: 7}
		case *runaway.Usage:
			for i := range field.NumField() {
				add(field.Field(i), r)
				field.SetZero()
			}
			return
		default:
			switch field.Kind() {
			case reflect.Bool:
				field.SetBool(true)
			case reflect.String:
				field.SetString("text")
			case reflect.Float64:
				field.SetFloat(0.5)
			case reflect.Uint8:
				field.SetUint(3)
			default:
				field.SetInt(3)
			}
		}
		want = append(want, *r)
	}
	for i := range reflect.TypeFor[runaway.Record]().NumField() {
		r := &runaway.Record{Op: runaway.OpEnd, At: time.Unix(1, 0).UTC()}
		add(reflect.ValueOf(r).Elem().Field(i), r)
	}
	for i := range want {
		given := want[i]
		if err := s.Append(&given, false); err != nil {
			t.Fatal(err)
		}
		given.Class, given.Snapshot = "changed", nil // it is the caller's
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var got []runaway.Record
	err := s.Load(t.Context(), "r", func(r *runaway.Record) error {
		got = append(got, *r)
		return nil
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
