// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func vfork(nr, a1, a2 uintptr) (pid, errno uintptr)
//
// The child borrows memory and stack of the parent, which sleeps until the child executes its program or ends. So the
// child must not return from here: it calls payloadMain, below the parent's frames, which never returns.
TEXT ·vfork(SB), NOSPLIT, $16-40
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
	MOVD	ZR, pid+24(FP)
	MOVD	R0, errno+32(FP)
	RET
ok:
	MOVD	R0, pid+24(FP)
	MOVD	ZR, errno+32(FP)
	RET
child:
	CALL	·payloadMain(SB)
	BRK
