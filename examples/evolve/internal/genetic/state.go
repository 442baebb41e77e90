// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrState matches every state that does not belong to the search that is to go on.
var ErrState = errors.New("genetic: the state cannot be used")

// state is what a search is besides its Config. Expressions are Go source, so that a person can read it, and so that
// only what the grammar allows comes back.
type state struct {
	Config   Config        `json:"config"`
	Chance   []byte        `json:"chance"`
	Asks     int           `json:"proposed"`
	Screened int           `json:"screened"`
	Fame     []string      `json:"accepted"`
	Living   []memberState `json:"living"`
	Asked    []uint64      `json:"asked"`
}

type memberState struct {
	Expr    string  `json:"expr"`
	Fitness float64 `json:"fitness"`
	Key     uint64  `json:"key"`
}

// Snapshot is the search as JSON. Restore goes on with exactly what this search would have proposed next.
func (s *Search) Snapshot() ([]byte, error) {
	chance, err := s.source.MarshalBinary()
	if err != nil {
		return nil, err
	}
	st := state{Config: s.c, Chance: chance, Asks: s.asks, Screened: s.screened, Asked: slices.Sorted(maps.Keys(s.asked))}
	for _, e := range s.fame {
		st.Fame = append(st.Fame, e.String())
	}
	for _, m := range s.living {
		st.Living = append(st.Living, memberState{m.expr.String(), m.fitness, m.key})
	}
	return json.MarshalIndent(st, "", "\t")
}

// Restore makes a search of a snapshot, which must be of one with the same Config.
func Restore(c Config, snapshot []byte) (*Search, error) {
	var st state
	if err := json.Unmarshal(snapshot, &st); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if len(st.Fame) == 0 {
		return nil, fmt.Errorf("%w: nothing was ever accepted", ErrState)
	}
	first, err := Parse(st.Fame[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	s := New(c, first)
	if s.c != st.Config {
		return nil, fmt.Errorf("%w: it is of %+v and not of %+v", ErrState, st.Config, s.c)
	}
	if st.Asks < 0 || st.Screened < 0 || len(st.Living) > s.c.Population {
		return nil, fmt.Errorf("%w: counts that cannot be", ErrState)
	}
	source := rand.PCG{}
	if err := source.UnmarshalBinary(st.Chance); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	*s.source, s.asks, s.screened = source, st.Asks, st.Screened
	for _, text := range st.Fame[1:] {
		e, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		s.fame = append(s.fame, e)
	}
	for _, m := range st.Living {
		e, err := Parse(m.Expr)
		if err != nil || math.IsNaN(m.Fitness) {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
		s.living = append(s.living, member{e, m.Fitness, m.Key})
	}
	for _, key := range st.Asked {
		s.asked[key] = true
	}
	return s, nil
}
