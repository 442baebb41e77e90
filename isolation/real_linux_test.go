// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

// realScene uses an executor that is really attacked before it gets a variant.
func realScene(t testing.TB, name string, ex executor.Executor, err error) *scene {
	s := setScene(t)
	s.hooks = isolation.Hooks{}
	s.config.Executors = []isolation.Candidate{{Name: name, Executor: ex, Err: err}}
	s.config.Run = executor.Spec{Args: []string{"sh", "gate/check.sh"}, Limits: executor.Limits{Wall: 30 * time.Second}}
	s.config.Judge = isolation.ExitStatus{}
	return s
}

// TestRealExecutors: the whole path, with nothing faked.
func TestRealExecutors(t *testing.T) {
	guarded, err := rlimit.New(t.Context(), rlimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	for name, c := range map[string]struct {
		ex   executor.Executor
		tier isolation.Tier
	}{"rlimit": {guarded, isolation.TierGuarded}, "bubblewrap": {confined(t), isolation.TierConfined}} {
		t.Run(name, func(t *testing.T) {
			s := realScene(t, name, c.ex, nil)
			s.config.MinTier = c.tier
			b, _ := s.open()
			if st := b.Status(); st.Executor != name || st.Required != c.tier || !st.Proven.Has(c.tier.Needs()) {
				t.Fatalf("%+v", st)
			}
			v, err := b.Try(context.Background(), s.good("1"))
			if err != nil || !v.Accepted || v.Result == nil || !v.Result.OK() {
				t.Fatalf("%+v, %v", v, err)
			}
			before := s.state()
			v, err = b.Try(context.Background(), s.bad("1"))
			if err != nil || v.Accepted || v.Stage != isolation.StageJudge || v.Result.ExitCode != 1 {
				t.Fatalf("%+v, %v", v, err)
			}
			if diff := cmp.Diff(before, s.state()); diff != "" {
				t.Errorf("the tree is another one:\n%s", diff)
			}
		})
	}
}

// vandal is a variant that does what it can to the gate, the tree and what comes after it, and then exits with 0.
const vandal = `
echo exit 0 > gate/check.sh; chmod 777 gate; mv gate elsewhere; rm -rf src gate README
rm -rf .; rm -f /usr/bin/env /etc/passwd; echo x > "$HOME/x"
(setsid sh -c 'sleep 3.0701; echo late > /tmp/late' &)
exit 0
`

// TestHostileVariant: it runs, and everything stands as before.
func TestHostileVariant(t *testing.T) {
	s := realScene(t, "bubblewrap", confined(t), nil)
	s.config.MinTier = isolation.TierConfined
	s.write("src/run.sh", "exit 0\n")
	s.config.Run.Args = []string{"sh", "src/run.sh"}
	b, _ := s.open()
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{s.modify("src/run.sh", vandal)}})
	if err != nil || !v.Accepted { // the exit status is all that this judge looks at
		t.Fatalf("%+v, %v", v, err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if pids := running("sleep\x003.0701"); len(pids) > 0 {
		t.Errorf("what it started lives on: %v", pids)
	}
}

// TestClaimGuardsCannotBeEditedByTheLoop: somebody changes the gate in the tree between the seal and the run. What runs
// is the trusted copy, and the change is found.
func TestClaimGuardsCannotBeEditedByTheLoop(t *testing.T) {
	s := realScene(t, "bubblewrap", confined(t), nil)
	s.config.MinTier = isolation.TierConfined
	s.hooks.At = func(point string) {
		if point == "running" {
			s.write("gate/check.sh", "echo forged; exit 0\n")
		}
	}
	b, _ := s.open()
	before := s.state()
	v, err := b.Try(context.Background(), s.bad("1"))
	if v == nil || v.Accepted || !v.Because(isolation.WhyTampered) || v.Result == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	if v.Result.ExitCode != 1 || strings.Contains(v.Result.Stdout.String(), "forged") {
		t.Errorf("the forged gate ran: %+v", v.Result)
	}
	if before != s.state() {
		t.Error("the tree is another one")
	}
}

// TestClaimNoHostSecretsInTheContainer: canaries in the tree, in its history and in the parent's environment.
func TestClaimNoHostSecretsInTheContainer(t *testing.T) {
	const canary = "canary-8f1e77"
	t.Setenv("PROVIDER_API_KEY", canary+"-environment")
	s := realScene(t, "bubblewrap", confined(t), nil)
	s.config.MinTier = isolation.TierConfined
	s.write(".env", canary+"-dotenv\n")
	s.write(".git/objects/ab/cdef", canary+"-history\n")
	if err := os.WriteFile(filepath.Join(s.home, "secret"), []byte(canary+"-file"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.write("gate/check.sh", fmt.Sprintf(`
{ env; cat .env .git/objects/ab/cdef '%s/secret' '%s'/state/*; cat /proc/*/environ /proc/*/cmdline; ls -laR / ; } > out.txt 2>&1
echo seen; exit 0
`, s.home, s.home))
	s.config.Run.Artifacts = []string{"out.txt"}
	var seen []byte
	s.config.Judge = judge(func(_ context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
		var err error
		seen, err = os.ReadFile(filepath.Join(e.Artifacts, "out.txt"))
		if !bytes.Equal(e.Stdout, []byte("seen\n")) || !e.StdoutComplete {
			t.Errorf("the output is %q", e.Stdout)
		}
		return isolation.Keep, err
	})
	b, _ := s.open()
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil || !v.Accepted || len(seen) < 1000 {
		t.Fatalf("%+v, %v; %d bytes", v, err, len(seen))
	}
	if i := bytes.Index(seen, []byte(canary)); i >= 0 {
		t.Errorf("a secret was seen: %q", seen[i:min(len(seen), i+40)])
	}
	if left, err := os.ReadDir(filepath.Join(s.config.StateDir, "artifacts")); err != nil || len(left) > 0 {
		t.Errorf("artifacts were left behind: %v, %v", left, err)
	}
}

// TestKilledWhileAVariantRuns: the host program is killed in the middle of a run. Nothing of the variant lives on, and
// the tree is the accepted one.
func TestKilledWhileAVariantRuns(t *testing.T) {
	s := setScene(t)
	s.write("gate/check.sh", "sleep 87.0307\n")
	before := s.state()
	cmd := s.child("real", false)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for n := 0; len(running("sleep\x0087.0307")) == 0; n++ {
		if n > 6000 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the variant does not run:\n%s", output.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	ex, err := rlimit.New(t.Context(), rlimit.Config{}) // sweeps
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Close()
	again := realScene(t, "rlimit", ex, nil)
	again.home, again.dir, again.config.StateDir, again.config.Sources = s.home, s.dir, s.config.StateDir, s.config.Sources
	again.open()
	if diff := cmp.Diff(before, again.state()); diff != "" {
		t.Errorf("the tree is another one:\n%s", diff)
	}
	if pids := running("sleep\x0087.0307"); len(pids) > 0 {
		t.Errorf("the variant lives on: %v", pids)
	}
}

// running returns the processes with these arguments.
func running(cmdline string) (pids []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), cmdline) {
			pids = append(pids, strings.Split(name, "/")[2])
		}
	}
	return pids
}

// TestRefusalIsFastAndNamesTheFix: whatever is wrong with the candidates, Open says so within 10 s and nothing has run.
func TestRefusalIsFastAndNamesTheFix(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	missing := &executor.UnsupportedError{Executor: "bubblewrap", Reason: "there is no bwrap", Fix: "apt-get install bubblewrap"}
	unreachable := fmt.Errorf("containerd: %w", &os.PathError{Op: "dial", Path: "/run/containerd/containerd.sock", Err: syscall.ECONNREFUSED})
	hanging := &fakeExecutor{caps: executor.AllCapabilities}
	hanging.run = func(context.Context, executor.Spec) (*executor.Result, error) { <-hang; return nil, errAny }
	lying := &fakeExecutor{caps: executor.AllCapabilities, run: func(context.Context, executor.Spec) (*executor.Result, error) { return ended(0), nil }}
	weak := &fakeExecutor{caps: executor.CleanEnv}
	for name, c := range map[string]struct {
		candidates []isolation.Candidate
		texts      []string
	}{
		"missing":     {[]isolation.Candidate{{Name: "bubblewrap", Err: missing}}, []string{"bubblewrap", "apt-get install"}},
		"unreachable": {[]isolation.Candidate{{Name: "containerd", Err: unreachable}}, []string{"containerd.sock", "refused"}},
		"hanging":     {[]isolation.Candidate{{Name: "hanging", Executor: hanging}}, []string{"hanging"}},
		"hanging, then missing": {[]isolation.Candidate{{Name: "hanging", Executor: hanging}, {Name: "bubblewrap", Err: missing}},
			[]string{"hanging", "apt-get install"}},
		"two hang": {[]isolation.Candidate{{Name: "first", Executor: hanging}, {Name: "second", Executor: hanging}},
			[]string{"first", "second"}},
		"capabilities hang": {[]isolation.Candidate{{Name: "mute", Executor: mute(hang)}}, []string{"mute", "capabilities"}},
		"lying":             {[]isolation.Candidate{{Name: "lying", Executor: lying}}, []string{"lying", "not proven"}},
		"weak":              {[]isolation.Candidate{{Name: "weak", Executor: weak}}, []string{"weak", "OutputBounded"}},
		"nothing":           {[]isolation.Candidate{{Name: "empty"}}, []string{"empty", "no executor"}},
		"typed nil":         {[]isolation.Candidate{{Name: "nil", Executor: (*fakeExecutor)(nil)}}, []string{"nil", "no executor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.hooks = isolation.Hooks{}
			s.config.Executors = c.candidates
			began := time.Now()
			b, _, err := s.tryOpen()
			took := time.Since(began)
			if b != nil || !errors.Is(err, isolation.ErrDenied) {
				t.Fatalf("%v, %v", b, err)
			}
			for _, text := range c.texts {
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text)) {
					t.Errorf("the error does not name %q: %v", text, err)
				}
			}
			if took > 30*time.Second { // 10 s on a machine that has time for us
				t.Errorf("it took %v", took)
			}
		})
	}
}

// mute is an executor that does not even say what it claims.
type mute chan struct{}

func (m mute) Capabilities() executor.Capability { <-m; return 0 }

func (m mute) Run(context.Context, executor.Spec) (*executor.Result, error) { <-m; return nil, errAny }
