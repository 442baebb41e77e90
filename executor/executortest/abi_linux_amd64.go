// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"syscall"

	"github.com/evoseal/containment/executor"
)

// On amd64 the kernel serves two more system call interfaces. Their numbers mean other calls than the native ones, so a
// filter that checks numbers and not the interface is no filter at all.
func abiCases() []Case {
	return []Case{
		attack("policy-denied", "a call through the x32 interface passes a list of native numbers", executor.SyscallsFiltered,
			foreignABI("abi-x32")),
		attack("policy-denied-32", "a call through the 32 bit interface has other numbers", executor.SyscallsFiltered,
			foreignABI("abi-int80")),
	}
}

// foreignABI demands that the payload dies of the call. A filter sees an x32 call before the kernel knows whether it has
// that interface at all, so a kernel without it is no excuse.
func foreignABI(payload string) probe {
	return func(s *scene) error {
		res, err := s.reach(s.spec(payload, job{}))
		if err != nil {
			return err
		}
		if got := answers(res.Stdout.Bytes(), "returned"); len(got) > 0 {
			return s.breach("a call through a foreign interface returned: %q", got)
		}
		if payload == "abi-int80" && res.Signal == syscall.SIGSEGV {
			return foreignABI("abi-x32")(s) // this kernel has no 32 bit interface; the other one is the attack then
		}
		if res.Cause != executor.CausePolicyDenied || res.Signal != syscall.SIGSYS || res.OK() {
			return s.breach("the payload died, and the cause is not %v: %s", executor.CausePolicyDenied, describe(res))
		}
		return nil
	}
}

// abiPayloads are the payloads of this architecture alone.
func abiPayloads() map[string]func(*payload) {
	return map[string]func(*payload){"abi-x32": x32Payload, "abi-int80": int80Payload}
}

// x32Payload asks for getpid, which does no harm, through the x32 interface.
func x32Payload(p *payload) {
	const x32Bit = 0x40000000
	p.reached()
	resetSignal(syscall.SIGSYS)
	_, _, errno := syscall.RawSyscall(syscall.SYS_GETPID|x32Bit, 0, 0, 0)
	p.say("returned", "x32 "+errno.Error())
}

// int80Payload wants the plain effect of both signals: SIGSYS is the filter, SIGSEGV a kernel without the interface.
func int80Payload(p *payload) {
	p.reached()
	resetSignal(syscall.SIGSYS)
	resetSignal(syscall.SIGSEGV)
	int80()
	p.say("returned", "int80")
}

// int80 is in int80_linux_amd64.s.
func int80()
