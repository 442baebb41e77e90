// SPDX-License-Identifier: Apache-2.0

// Package command asks a program of the operator for variants: the state goes in as JSON on its standard input, the edits
// come back on its standard output, one process for each variant.
//
// What it prints is one of five things, told apart by how it begins:
//
//	{"edits": [{"op": "modify", "path": "a.go", "content": "…"}], "note": "…", "usage": {"tokens": 12}}
//	{"exhausted": true}
//	diff --git a/a.go b/a.go …      a patch as git writes it
//	*** Begin Patch …               a patch of that kind
//	a.go                            search/replace blocks, each file with its name before it
//
// "usage" has the names of runaway.Usage, and says what the program has spent. A program that fails, prints nothing, too
// much or for too long has made no variant; the end of what it wrote to its standard error is in the message.
//
// It inherits nothing: its environment is a fixed PATH and what the Config names.
//
// # Errors
//
// ErrConfig, ErrFailed, ErrTooLarge, ErrTimeout and ErrAnswer are what they say; a *allowlist.DeniedError means that the
// edits do not fit the surface.
//
// # What it does not do
//
// It does not confine the program, which is the operator's own and has his rights: only its edits are not trusted. When it
// ends, its process group is killed; a daemon that has left the group goes on.
package command
