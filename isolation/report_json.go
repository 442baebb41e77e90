// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/evoseal/containment/executor"
)

// The types of the record. The first is defined by the in-toto attestation framework, version 1
// (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md); the second is ours.
const (
	statementType = "https://in-toto.io/Statement/v1"
	// ReportType is the predicate type of a [Report].
	ReportType = "https://github.com/evoseal/containment/isolation/verification/v1"
)

// statement is a Report as it is written. Its fields are in a fixed order and there is no map with more than one key,
// so that equal reports are equal bytes.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Executor    string                 `json:"executor"`
	Fingerprint string                 `json:"fingerprint,omitempty"`
	Needs       executor.Capability    `json:"needs"`
	Claimed     executor.Capability    `json:"claimed"`
	Proven      executor.Capability    `json:"proven"`
	Full        bool                   `json:"full"`
	Host        HostFacts              `json:"host"`
	Library     string                 `json:"library"`
	Suite       string                 `json:"suite"`
	Nonce       string                 `json:"nonce"`
	Enforced    []executor.Enforcement `json:"enforced,omitempty"`
	Probes      []Probe                `json:"probes"`
	Started     time.Time              `json:"started"`
	Finished    time.Time              `json:"finished"`
	Expires     time.Time              `json:"expires"`
}

// SubjectDigest returns what stands for the executor in a record: the hexadecimal SHA-256 of its type, its fingerprint,
// its claims, and the mechanisms that it reports, one on a line.
func (r Report) SubjectDigest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n%q\n%v\n", r.Executor, r.Fingerprint, r.Claimed)
	for _, e := range r.Enforced {
		fmt.Fprintf(h, "%q %q %q\n", e.Limit, e.By, e.Scope)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Hash returns the hexadecimal SHA-256 of the JSON form. It stays the same when a record is read and written again.
func (r Report) Hash() string {
	data, err := json.Marshal(r)
	if err != nil {
		return "" // no hash of a record is this one
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// MarshalJSON writes the report as an in-toto Statement, version 1, whose subject is the executor.
func (r Report) MarshalJSON() ([]byte, error) {
	if r.Probes == nil {
		r.Probes = []Probe{}
	}
	return json.Marshal(statement{
		Type:          statementType,
		Subject:       []subject{{Name: r.Executor, Digest: map[string]string{"sha256": r.SubjectDigest()}}},
		PredicateType: ReportType,
		Predicate: predicate{
			Executor: r.Executor, Fingerprint: r.Fingerprint, Needs: r.Needs, Claimed: r.Claimed, Proven: r.Proven,
			Full: r.Full, Host: r.Host, Library: r.Library, Suite: r.Suite, Nonce: r.Nonce, Enforced: r.Enforced,
			Probes: r.Probes, Started: r.Started, Finished: r.Finished, Expires: r.Expires,
		},
	})
}

// UnmarshalJSON reads a record, for those who audit one. A record of another type, or one whose subject is not the
// executor that it describes, matches [ErrRecord].
func (r *Report) UnmarshalJSON(data []byte) error {
	var s statement
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if s.Type != statementType || s.PredicateType != ReportType {
		return fmt.Errorf("%w: its types are %.100q and %.100q", ErrRecord, s.Type, s.PredicateType)
	}
	p := s.Predicate
	read := Report{
		Executor: p.Executor, Fingerprint: p.Fingerprint, Needs: p.Needs, Claimed: p.Claimed, Proven: p.Proven,
		Full: p.Full, Host: p.Host, Library: p.Library, Suite: p.Suite, Nonce: p.Nonce, Enforced: p.Enforced,
		Probes: p.Probes, Started: p.Started, Finished: p.Finished, Expires: p.Expires,
	}
	if len(s.Subject) != 1 || s.Subject[0].Name != p.Executor || s.Subject[0].Digest["sha256"] != read.SubjectDigest() {
		return fmt.Errorf("%w: its subject is not the executor that it describes", ErrRecord)
	}
	*r = read
	return nil
}
