// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/evoseal/containment/executor"
)

// A filter decides by number and argument registers, before the kernel looks at what they mean. So the attacks call
// with arguments that every kernel refuses for another reason, and before it asks who is calling: that errno shows that
// the call got through, and nothing ever takes effect, under the control neither.
var attackedCalls = []struct{ name, why string }{
	{"vsock", "AF_VSOCK reaches the hypervisor, PACKET and ALG the kernel; one register holds 64 bits, the family 32"},
	{"io-uring", "io_uring does I/O that no filter sees"},
	{"keyctl", "keyrings belong to a uid and outlive the run"},
	{"nested-userns", "a new user namespace is root over a large part of the kernel"},
	{"bpf", "bpf, perf and userfaultfd are the kernel's largest attack surfaces"},
	{"ptrace", "tracing reaches into other processes, our own init included"},
	{"pidfd-getfd", "a descriptor can be taken out of another process"},
	{"tty-ioctl", "TIOCSTI types into the terminal; the kernel compares 32 bits of a 64 bit register"},
	{"mount", "mounting and chroot change what every path means"},
	{"handles", "a file handle opens files outside the view"},
	{"clone3", "its flags lie behind a pointer, where no filter can look"},
}

// syscallCases makes a case of each group of calls, and adds those of the architecture.
func syscallCases() []Case {
	var cases []Case
	for _, c := range attackedCalls {
		cases = append(cases, attack("call-"+c.name, c.why, executor.SyscallsFiltered, callsRefused(c.name)))
	}
	return append(cases, abiCases()...)
}

// refusedErrnos are the answers of filters. Anything else, success included, means that the kernel looked at the call.
var refusedErrnos = []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EAFNOSUPPORT}

// callsRefused demands that every call of a group is refused. Under the control it is enough that one gets through: a
// kernel may be built without some of them.
func callsRefused(group string) probe {
	return func(s *scene) error {
		res, err := s.reach(s.spec("calls", job{Name: group}))
		if err != nil {
			return err
		}
		said := answers(res.Stdout.Bytes(), "call")
		if len(said) == 0 {
			return inconclusive(s.name, "the payload made no call: %s", describe(res))
		}
		var through []string
		for _, line := range said {
			name, number, _ := strings.Cut(line, " ")
			errno, err := strconv.Atoi(number)
			if err != nil {
				return inconclusive(s.name, "the payload says %q", line)
			}
			if !slices.Contains(refusedErrnos, syscall.Errno(errno)) {
				through = append(through, name+": "+syscall.Errno(errno).Error())
			}
		}
		if len(through) > 0 {
			return s.breach("calls got through to the kernel: %s", strings.Join(through, ", "))
		}
		return nil
	}
}
