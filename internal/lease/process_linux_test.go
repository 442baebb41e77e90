// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/lease"
)

// roleVar makes a copy of the test binary play one of the roles below instead of testing.
const roleVar = "LEASE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role string, args []string) error {
	switch role {
	case "hold": // DIR N: hold N leases until killed
		dir, err := lease.Open(args[0], 0o700)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		for range n {
			rec := lease.Record{ID: lease.NewID(), Label: "held by a child", Scratch: []string{"/scratch"}}
			if _, err := dir.Acquire(rec); err != nil {
				return err
			}
			fmt.Println(rec.ID)
		}
	case "sweep": // DIR: say which leases were cleaned
		dir, err := lease.Open(args[0], 0o700)
		if err != nil {
			return err
		}
		return dir.Sweep(context.Background(), func(_ context.Context, rec lease.Record) error {
			fmt.Println(rec.ID)
			return nil
		})
	case "slot": // DIR BASE COUNT: hold a slot until killed
		slots, err := lease.OpenSlots(slotConfig(args))
		if err != nil {
			return err
		}
		slot, err := slots.Take()
		if err != nil {
			return err
		}
		fmt.Println(slot.UID)
	}
	// A child of the holder that lives on: it must not have inherited the lock.
	sleep := exec.Command("sleep", "300")
	if err := sleep.Start(); err != nil {
		return err
	}
	fmt.Println("child", sleep.Process.Pid)
	_, err := io.Copy(io.Discard, os.Stdin) // until killed
	return err
}

func slotConfig(args []string) lease.SlotConfig {
	base, _ := strconv.ParseUint(args[1], 10, 32)
	count, _ := strconv.ParseUint(args[2], 10, 32)
	return lease.SlotConfig{Dir: args[0], Base: uint32(base), Count: uint32(count)}
}

// holder is a process that plays "hold" or "slot".
type holder struct {
	cmd   *exec.Cmd
	names []string // what it holds
	child int      // a process that it started
}

// command is a copy of this process; by its link in /proc it is found even where its directory cannot be entered.
func command(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = []string{roleVar + "=" + role, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = t.Output()
	return cmd
}

func startHolder(t *testing.T, role string, args ...string) *holder {
	t.Helper()
	cmd := command(t, role, args...)
	if _, err := cmd.StdinPipe(); err != nil { // it stays open until the process is waited for
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &holder{cmd: cmd}
	t.Cleanup(h.kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			if h.child, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Kill(h.child, unix.SIGKILL) })
			return h
		}
		h.names = append(h.names, lines.Text())
	}
	t.Fatal("the holder ended before it held anything")
	return nil
}

// kill ends the holder the hard way; its own child lives on.
func (h *holder) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// mustLive fails if the holder's child is dead: then its not holding a lock would prove nothing.
func (h *holder) mustLive(t *testing.T) {
	t.Helper()
	if err := unix.Kill(h.child, 0); err != nil {
		t.Fatalf("the holder's child is dead (%v): this proves nothing", err)
	}
}
