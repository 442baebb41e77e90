// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func vfork(nr, a1, a2 uintptr) (pid, errno uintptr)
//
// The child borrows memory and stack of the parent, which sleeps until the child executes its program or ends. So the
// child must not return from here: it calls payloadMain, below the parent's frames, which never returns.
TEXT ·vfork(SB), NOSPLIT, $16-40
	MOVQ	nr+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	SYSCALL
	CMPQ	AX, $0
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	NEGQ	AX
	MOVQ	$0, pid+24(FP)
	MOVQ	AX, errno+32(FP)
	RET
ok:
	MOVQ	AX, pid+24(FP)
	MOVQ	$0, errno+32(FP)
	RET
child:
	CALL	·payloadMain(SB)
	INT	$3
