// SPDX-License-Identifier: Apache-2.0

// Package wire writes and reads messages between processes of ours as a plain row of fields.
//
// A message has one function that passes each of its fields to a [Coder], in their order: to a [Writer] when it is sent and
// to a [Reader] when it is received, so that the two cannot differ. Text is bytes: arguments and paths need not be UTF-8,
// and a text format would change them.
//
// # Errors
//
// A Reader yields zero values once its data is damaged; [Reader.Err] then returns [ErrDamaged]. Data that is left over is
// damage too.
//
// # What it does not do
//
// There are no names, no versions and no optional fields: both ends must agree. A Reader never allocates more than a small
// multiple of the data that it was given, whatever numbers are in there.
package wire
