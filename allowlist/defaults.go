// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed defaults/protected.json
var defaultsJSON []byte

// defaultList is the list of default protected names. It is data, and grows old: a change to it is a reviewed change,
// with a new version.
type defaultList struct {
	Version  int
	Patterns []struct{ Pattern, Class, Reason string }
}

// defaultRules parses the list once: it is a constant of the program. A test reads it, so that the error cannot occur in
// a release; a policy without its defaults must not exist all the same.
var defaultRules = sync.OnceValues(parseDefaults)

type defaultRuleSet struct {
	version int
	rules   []*protectRule
}

func parseDefaults() (defaultRuleSet, error) {
	var list defaultList
	if err := json.Unmarshal(defaultsJSON, &list); err != nil {
		return defaultRuleSet{}, fmt.Errorf("allowlist: embedded list of protected names: %w", err)
	}
	set := defaultRuleSet{version: list.Version}
	ranks := map[string]int{
		"core": rankCore, "exec": rankSoft, "deps": rankSoft, "tool": rankSoft, "opaque": rankSoft,
	}
	for _, d := range list.Patterns {
		p, faults := parsePattern(d.Pattern, protectPattern)
		rank, known := ranks[d.Class]
		if len(faults) > 0 || !known || d.Reason == "" {
			return defaultRuleSet{}, fmt.Errorf("allowlist: embedded list of protected names: pattern %q of class %q: %w",
				d.Pattern, d.Class, ErrConfig)
		}
		set.rules = append(set.rules, &protectRule{pattern: p, rank: rank, rule: Rule{
			Pattern: d.Pattern, Class: d.Class, Source: "default:" + d.Class, Reason: d.Reason,
		}})
	}
	return set, nil
}
