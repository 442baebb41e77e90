// SPDX-License-Identifier: Apache-2.0

package executortest

// Numbers that package syscall does not have.
const (
	sysClone3          = 435
	sysIOURingSetup    = 425
	sysIOURingEnter    = 426
	sysIOURingRegister = 427
	sysOpenTree        = 428
	sysPidfdGetfd      = 438
	sysSetns           = 308
	sysNameToHandleAt  = 303
	sysProcessVMReadv  = 310
	sysKcmp            = 312
	sysBPF             = 321
	sysUserfaultfd     = 323
)
