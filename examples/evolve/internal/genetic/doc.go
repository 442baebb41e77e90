// SPDX-License-Identifier: Apache-2.0

// Package genetic breeds Go expressions: genetic programming over a closed grammar of arithmetic, comparisons and
// choices, which is written as Go source and read back from it by way of go/ast.
//
//	first, err := genetic.Parse("-gap")
//	s := genetic.New(genetic.Config{Seed: 1, Problem: binpack.Uniform, Screen: 150}, first)
//	e, err := s.Next(ctx)            // the most promising one that was not proposed yet
//	source := e.Body()               // goes through the boundary, is compiled and tested there
//	s.Told(e, excess)                // as it was measured there
//	s.Kept(e)                        // if it is the accepted one now
//
// # Screening
//
// With Config.Screen most candidates are never compiled: this package interprets them on a small sample, and proposes
// the most promising. That is sound because a candidate is data, a list of nodes out of a closed set that can neither
// loop nor call nor allocate; nothing that anybody else wrote is ever evaluated here. What is kept is decided
// elsewhere, by what the compiled variant did to other instances.
//
// # Errors
//
// Parse and ParseFunc fail with ErrGrammar for every source that says more than the grammar can, Restore with ErrState.
//
// # What it does not do
//
// It compiles and runs nothing. It does not simplify what it found beyond constants. A compiler that fuses
// multiplication and addition, as on arm64, may round otherwise than the interpreter does; screening is a forecast.
package genetic
