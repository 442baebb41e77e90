// SPDX-License-Identifier: Apache-2.0

// Package stream is what a host program and the supervisor in a box say to each other, over one pipe in each direction.
//
// A stream is a row of records: a kind, a length, and so many bytes. Host to box: open; then one job: the job, its trees as
// data, standard input as data for as long as the box gives credit, perhaps cancel; then exit. Box to host: hello; started;
// output as data and credit in any order; the result; artifacts as data; and end, which repeats the job's nonce.
//
// # Errors
//
// Whatever a stream may not hold is a [ErrProtocol].
//
// # What it does not do
//
// Nothing is encrypted or signed: who holds the pipe is believed to be the other end. What it says is not.
package stream
