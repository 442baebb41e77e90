// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding/json"

	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// loggedVerdict is a verdict as the log has it.
type loggedVerdict struct {
	isolation.Verdict
	Outcome  runaway.Kind `json:"outcome"`
	Cause    string       `json:"cause"`
	Governor string       `json:"governor"`
}

// records returns the bodies of all records of a kind.
func (s *scene) records(kind isolation.RecordKind) (list []json.RawMessage) {
	s.t.Helper()
	for rec, err := range isolation.ReadLog(s.config.StateDir, "run") {
		if err != nil {
			s.t.Fatal(err)
		}
		if rec.Kind == kind {
			list = append(list, rec.Body)
		}
	}
	return list
}

func (s *scene) lastVerdict() (v loggedVerdict) {
	s.t.Helper()
	all := s.records(isolation.RecordVerdict)
	if len(all) == 0 {
		s.t.Fatal("the log has no verdict")
	}
	if err := json.Unmarshal(all[len(all)-1], &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// phases returns the names of the phases that were recorded.
func (s *scene) phases() (list []string) {
	s.t.Helper()
	for _, body := range s.records(isolation.RecordPhase) {
		var p struct{ Phase string }
		if err := json.Unmarshal(body, &p); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, p.Phase)
	}
	return list
}
