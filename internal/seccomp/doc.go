// SPDX-License-Identifier: Apache-2.0

// Package seccomp holds the deny list of system calls that every run lives under, and assembles it into the filter
// program that the kernel executes.
//
//	prog, err := seccomp.Assemble(seccomp.Options{Sockets: seccomp.SocketsUnix})
//	if err != nil { … }
//	fd.Write(seccomp.Bytes(prog)) // the form that bwrap --seccomp and SECCOMP_SET_MODE_FILTER take
//
// The list is data: [Calls] yields every row with its condition, answer and reason. Answers are errnos chosen so that
// language runtimes take the fallback that they have anyway; an ABI other than the native 64-bit one ends the process
// with SIGSYS, because the list means nothing to it. Conditions compare exactly the bits that the kernel uses: an int
// argument is its low 32 bits, whatever the register holds above them. A call that is newer than the list is answered
// as a kernel without that call would answer it.
//
// The program is written by this package and not by a library at run time: the library that knows the call numbers
// costs 0.3 ms of package initialisation in every process that links it, which means in every stage of every run. The
// tests hold the numbers and the verdicts against that library.
//
// # Errors
//
// [Assemble] fails with an error that matches errors.ErrUnsupported on systems other than Linux on amd64 or arm64, and
// with [ErrOptions] if the options hold an undefined value.
//
// # What it does not do
//
//   - It is a deny list. The kernel's attack surface beyond it stays reachable.
//   - It does not look behind pointers: calls whose arguments lie in memory are allowed or refused as a whole.
//   - Refusals by errno are invisible to the host; only SIGSYS can be observed.
//   - Debuggers do not work (ptrace), nor does LeakSanitizer, which attaches to its own process at exit: run
//     AddressSanitizer with ASAN_OPTIONS=detect_leaks=0. 32-bit and x32 programs do not run at all.
//   - It does not load the program: no_new_privs must be set first, on the thread that executes the payload.
package seccomp
