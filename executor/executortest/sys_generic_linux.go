// SPDX-License-Identifier: Apache-2.0

//go:build arm64 || riscv64 || loong64

package executortest

// Numbers that package syscall does not have.
const (
	sysClone3          = 435
	sysIOURingSetup    = 425
	sysIOURingEnter    = 426
	sysIOURingRegister = 427
	sysOpenTree        = 428
	sysPidfdGetfd      = 438
	sysSetns           = 268
	sysNameToHandleAt  = 264
	sysProcessVMReadv  = 270
	sysKcmp            = 272
	sysBPF             = 280
	sysUserfaultfd     = 282
)
