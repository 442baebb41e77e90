// SPDX-License-Identifier: Apache-2.0

// Package fsys is a thin layer over the system calls that work on names below a directory descriptor: opening beneath a
// root without following anything, listing, exchanging two names in one step, and changing the attributes of what a
// handle holds. It decides nothing and holds no state. The functions are Linux only.
//
// # Errors
//
// Calls return the error number of the kernel, so that a caller can tell ELOOP from EXDEV; the caller adds the path.
//
// # What it does not do
//
// A handle on a directory stays valid when somebody moves the directory elsewhere: what is done through it is done
// there. Open the parent again for each operation if that matters.
package fsys
