// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// The kernel begins our init here, with a stack and nothing else.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	CALL	·initMain(SB)
	BRK

DATA ·entryPC(SB)/8, $·entry(SB)
GLOBL ·entryPC(SB), RODATA|NOPTR, $8
