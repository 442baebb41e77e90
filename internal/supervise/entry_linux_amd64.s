// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The kernel begins our init here, with a stack and nothing else. What the compiler puts before a Go function that is
// called from assembly reads the current goroutine from thread-local storage; any memory will do for that, since nothing
// looks at the value, and the stack is some. 158 is arch_prctl, 0x1002 ARCH_SET_FS.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	MOVQ	$158, AX
	MOVQ	$0x1002, DI
	MOVQ	SP, SI
	SYSCALL
	CALL	·initMain(SB)
	INT	$3

DATA ·entryPC(SB)/8, $·entry(SB)
GLOBL ·entryPC(SB), RODATA|NOPTR, $8
