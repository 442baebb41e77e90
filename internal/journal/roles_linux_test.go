// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

// roleVar makes a copy of the test binary play one of the roles below instead of testing.
const roleVar = "JOURNAL_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, dir string) error {
	switch role {
	case "append": // without end; each number is printed once it was acknowledged
		return appendForever(config(dir))
	case "hold": // the lock, until killed, with a child that lives on
		if _, err := journal.Open(config(dir)); err != nil {
			return err
		}
		sleep := exec.Command("sleep", "300")
		if err := sleep.Start(); err != nil {
			return err
		}
		fmt.Println(sleep.Process.Pid)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "full":
		return fillDisk(dir)
	}
	return errors.New("no such role")
}

// command is a copy of this process; by its link in /proc it is found even where its directory cannot be entered.
func command(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", dir)
	cmd.Env = []string{roleVar + "=" + role, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func start(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd, lines := command(t, role, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, lines
}

// count is what a journal of "append" says: the snapshot and one for each record or cut.
func count(j *journal.Journal) (int, error) {
	var snapshot struct{ Count int }
	if s := j.Header().Snapshot; s != nil {
		if err := json.Unmarshal(s, &snapshot); err != nil {
			return 0, err
		}
	}
	for _, err := range j.Records() {
		if err != nil {
			return 0, err
		}
		snapshot.Count++
	}
	return snapshot.Count, nil
}

func appendForever(cfg journal.Config) error {
	j, err := journal.Open(cfg)
	if errors.Is(err, journal.ErrNotExist) {
		j, err = journal.Create(cfg, []byte(`{}`))
	}
	if err != nil {
		return err
	}
	n, err := count(j)
	if err != nil {
		return err
	}
	for ; ; n++ {
		if n%17 == 16 {
			if err := j.Rotate(j.Head(), fmt.Appendf(nil, `{"count":%d}`, n)); err != nil {
				return err
			}
		}
		if _, err := j.Append([]byte(`{"pad":"`+strings.Repeat("x", n%5000)+`"}`), n%5 == 0); err != nil {
			return err
		}
		fmt.Println(n + 1)
	}
}
