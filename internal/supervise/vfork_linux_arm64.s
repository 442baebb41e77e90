// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func vfork(nr, a1, a2 uintptr, p *program) (pid, errno uintptr)
//
// The child borrows memory and stack of the parent, which sleeps until the child executes its program or ends. So the
// child must not return from here: it calls payload, below the parent's frames, and payload never returns.
TEXT ·vfork(SB), NOSPLIT, $16-48
	MOVD	nr+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCC	ok
	NEG	R0, R0
	MOVD	ZR, pid+32(FP)
	MOVD	R0, errno+40(FP)
	RET
ok:
	MOVD	R0, pid+32(FP)
	MOVD	ZR, errno+40(FP)
	RET
child:
	MOVD	p+24(FP), R0
	MOVD	R0, 8(RSP)
	CALL	·payload(SB)
	BRK
