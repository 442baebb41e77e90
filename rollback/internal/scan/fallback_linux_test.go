// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"os"
	"os/exec"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/internal/testenv"
)

// withoutOpenat2 marks the child, in which the call is denied as old filters of container engines do.
const withoutOpenat2 = "SCAN_TEST_WITHOUT_OPENAT2"

// TestWithoutOpenat2 runs the tests of links and of random trees again where openat2 is refused.
func TestWithoutOpenat2(t *testing.T) {
	testenv.Need(t, "seccomp")
	t.Parallel()
	const again = "-test.run=^(TestSwappedForALink|TestRandomTrees|TestShapes/(links|git|names|depth|long_path))$"
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", again, "-scan.runs=3", "-test.v")
	cmd.Env = append(os.Environ(), withoutOpenat2+"=1", "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func init() {
	if os.Getenv(withoutOpenat2) == "" {
		return
	}
	err := seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Names: []string{"openat2"}, Action: seccomp.ActionErrno}},
		},
	})
	if err == nil {
		if _, err = fsys.Openat2(unix.AT_FDCWD, ".", unix.O_PATH, 0); err == unix.EPERM {
			return
		}
	}
	panic(err)
}
