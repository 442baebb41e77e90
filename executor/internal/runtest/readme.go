// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
)

// Readme compares what an executor promises here with its column of the table in README.md, which lies two directories
// up from every executor. "yes" and "no" are checked; any other word is a condition.
func Readme(t *testing.T, column string, promised executor.Capability) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- capabilities -->\n")
	table, _, found := strings.Cut(table, "<!-- /capabilities -->")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	at := slices.Index(cells(rows[0]), column)
	if !found || at < 0 {
		t.Fatalf("README.md has no table of capabilities with a column %q", column)
	}
	said := map[string]string{}
	for _, row := range rows[2:] {
		said[cells(row)[0]] = cells(row)[at]
	}
	for c := range executor.AllCapabilities.All() {
		switch word, has := said[c.String()], promised.Has(c); {
		case word == "":
			t.Errorf("README.md says nothing about %v", c)
		case word == "yes" && !has, word == "no" && has:
			t.Errorf("README.md says %q about %v of %s, and the executor promises it: %v", word, c, column, has)
		}
		delete(said, c.String())
	}
	if len(said) > 0 {
		t.Errorf("README.md has rows that are no capabilities: %v", said)
	}
}

func cells(row string) []string {
	parts := strings.Split(strings.Trim(row, "|"), "|")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	return parts
}
