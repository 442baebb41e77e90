// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/isolation"
	"github.com/google/go-cmp/cmp"
)

func TestTrustModelJSON(t *testing.T) {
	t.Parallel()
	m := quietModel()
	m.Generator, m.DeclaredBy, m.DeclaredAt = isolation.SelfTuned, "A. Person", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	m.Evidence = map[isolation.Fact]string{isolation.FactHost: "one account", isolation.FactUntrustedInput: "own benchmarks"}
	m.Conflicts = []isolation.Fact{isolation.FactHost}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back isolation.TrustModel
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"host":"shared"}`), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(isolation.TrustModel{Host: isolation.Shared}, back); diff != "" {
		t.Errorf("what is left out is unknown: %s", diff)
	}
	for what, bad := range map[string]string{
		"unknown key":     `{"enabled":false}`,
		"other case":      `{"Host":"shared"}`,
		"twice":           `{"host":"shared","host":"single-operator"}`,
		"escaped twice":   `{"host":"shared","h\u006fst":"single-operator"}`,
		"unknown value":   `{"host":"mine"}`,
		"a number":        `{"host":1}`,
		"unknown fact":    `{"evidence":{"weather":"fine"}}`,
		"unknown in list": `{"conflicts":["weather"]}`,
		"a list":          `[]`,
		"null":            `null`,
		"text":            `"shared"`,
	} {
		kept := m
		if err := json.Unmarshal([]byte(bad), &kept); err == nil {
			t.Errorf("%s: taken as %+v", what, kept)
		} else if diff := cmp.Diff(m, kept); diff != "" {
			t.Errorf("%s: refused, and changed: %s", what, diff)
		}
	}
	if err := json.Unmarshal([]byte(`{"enabled":false}`), &back); !errors.Is(err, isolation.ErrName) {
		t.Errorf("got %v, want ErrName", err)
	}
}

// Every field of a model can be written in JSON, so that no answer is lost on the way.
func TestTrustModelFields(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[isolation.TrustModel]()
	for i := range typ.NumField() {
		key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		err := json.Unmarshal([]byte(`{"`+key+`":[[[]]]}`), new(isolation.TrustModel))
		if err == nil || errors.Is(err, isolation.ErrName) && strings.Contains(err.Error(), "no field") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
