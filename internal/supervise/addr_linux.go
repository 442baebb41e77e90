// SPDX-License-Identifier: Apache-2.0

package supervise

import "unsafe"

// failureSize is the size of what a failing child writes.
const failureSize = 16

// The addresses that the child passes to the kernel; small enough to be inlined, free of calls.

func pauseAddr(p *program) uintptr   { return uintptr(unsafe.Pointer(p.pause)) }
func failureAddr(p *program) uintptr { return uintptr(unsafe.Pointer(p.failure)) }
