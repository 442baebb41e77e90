// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reexec_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

const (
	stage = "test"
	argv0 = "containment-stage:test"
)

// The stage writes what it was given and what surrounds it to its first file.
func init() {
	reexec.Register(stage, func(params []byte) int {
		out := os.NewFile(reexec.FirstFD, "out")
		out.WriteString(string(params) + "\n" + strings.Join(os.Environ(), ",") + "\n")
		dir, _ := os.Getwd()
		out.WriteString(dir + "\n")
		return 7
	})
}

func TestStage(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := reexec.Start(stage, []byte("par\x00\xffams"), []*os.File{w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil || state.ExitCode() != 7 {
		t.Errorf("stage ended with %v, %v; want exit code 7", state, err)
	}
	if want := "par\x00\xffams\nGOMAXPROCS=1,GOGC=25\n/\n"; string(out) != want {
		t.Errorf("the stage saw %q, want %q", out, want)
	}
}

// The name alone, or a descriptor that is not exactly ours, makes no stage, and the host program does not run either.
func TestNotAStage(t *testing.T) {
	memory := func(flags int, data string, seals int) *os.File {
		fd, err := unix.MemfdCreate("test", flags)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "memory")
		t.Cleanup(func() { f.Close() })
		if _, err := f.WriteString(data); err != nil {
			t.Fatal(err)
		}
		if seals != 0 {
			if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	for name, f := range map[string]*os.File{
		"nothing": nil, "another file": null,
		"not sealed":    memory(unix.MFD_ALLOW_SEALING, "containment stage parameters 1\n", 0),
		"half sealed":   memory(unix.MFD_ALLOW_SEALING, "containment stage parameters 1\n", unix.F_SEAL_WRITE),
		"other content": memory(unix.MFD_ALLOW_SEALING, "something else", all),
	} {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{argv0, "-test.run=NONE"}}
		if f != nil {
			cmd.ExtraFiles = []*os.File{f}
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 125 || len(out) > 0 {
			t.Errorf("%s: %v, output %q; want exit code 125 and silence", name, err, out)
		}
	}
}

// A process whose name only resembles a stage's is the host program.
func TestOtherNames(t *testing.T) {
	for _, name := range []string{"containment-stage:", "containment-stage:tes", "containment-stage:test2", "test"} {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{name, "-test.run=NONE"}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") && !strings.Contains(string(out), "no tests") {
			t.Errorf("%q: %v, %q", name, err, out)
		}
	}
}

func TestSealed(t *testing.T) {
	f, err := reexec.Sealed([]byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a sealed file was written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("a sealed file was cut")
	}
	got := make([]byte, 5)
	if n, err := f.ReadAt(got, 0); n != 4 || err != io.EOF || string(got[:n]) != "data" {
		t.Errorf("read %q, %v", got[:n], err)
	}
}
