// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/internal/testenv"
)

// subject is an executor with a small supervisor, as an operator would have it, and what it is measured with.
type subject struct {
	ex     *containerd.Executor
	socket string
	spec   executor.Spec
	dir    string
}

func newSubject(b *testing.B, warm containerd.Warm) subject {
	b.Helper()
	testenv.Need(b, "go")
	at, dir := daemon(b), shortDir(b)
	supervisor := filepath.Join(dir, "containment-init")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", supervisor, "./cmd/containment-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		b.Fatal(err)
	}
	config := containerd.Config{Supervisor: supervisor, Root: containerd.Root{Reads: hostReads}, Warm: warm}
	return subject{
		ex: at.open(b, config), socket: at.socket, dir: dir,
		spec: executor.Spec{Args: []string{"/bin/true"}, Workspace: workspace},
	}
}

func (s subject) run(b *testing.B) error {
	r, err := s.ex.Run(b.Context(), s.spec)
	if err == nil && !r.OK() {
		err = fmt.Errorf("cause %v: %s", r.Cause, r.Detail)
	}
	return err
}

// peer runs the same program over the same daemon with the same specification, and nothing else: no workspace, no
// verdict. Each has a name and ids of its own.
func (s subject) peer(b *testing.B) func() error {
	b.Helper()
	ctr, err := exec.LookPath("ctr")
	if err != nil {
		b.Fatal(err)
	}
	id := fmt.Sprintf("peer-%d", time.Now().UnixNano())
	text, release, err := s.ex.PeerSpec(b.Context(), s.spec, id)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := release(); err != nil {
			b.Error(err)
		}
	})
	file := filepath.Join(s.dir, id+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() error {
		cmd := exec.Command(ctr, "--address", s.socket, "--namespace", "peer", "run", "--rm", "--config", file, id)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

// BenchmarkTrue measures a cold run of /bin/true beside the peer, interleaved in the same loop, and reports the
// medians.
func BenchmarkTrue(b *testing.B) {
	s := newSubject(b, containerd.Warm{})
	runtest.BesidePeer(b, func() error { return s.run(b) }, s.peer(b))
}

// BenchmarkWarm offers four runs in a second to boxes that wait, and reports how long each takes.
func BenchmarkWarm(b *testing.B) {
	s := newSubject(b, containerd.Warm{Size: 2})
	const pace, first = 250 * time.Millisecond, 4
	for range first { // the first one is cold, and the pool fills after it
		if err := s.run(b); err != nil {
			b.Fatal(err)
		}
		time.Sleep(pace)
	}
	var took, teardown []time.Duration
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		start := time.Now()
		r, err := s.ex.Run(b.Context(), s.spec)
		if err != nil || !r.OK() {
			b.Fatal(r, err)
		}
		took, teardown = append(took, time.Since(start)), append(teardown, r.Timing.Teardown)
	}
	b.ReportMetric(float64(runtest.Median(teardown).Microseconds())/1000, "teardown-ms")
	slices.Sort(took)
	for _, part := range []int{10, 50, 90} {
		b.ReportMetric(float64(took[len(took)*part/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", part))
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkThroughput keeps two runs under way, and two of the peer's, and reports the processor time of the whole
// machine for each, daemon and shims included: it means something on a machine that does nothing else.
func BenchmarkThroughput(b *testing.B) {
	s := newSubject(b, containerd.Warm{})
	const workers = 2
	for name, worker := range map[string]func() func() error{
		"ours": func() func() error { return func() error { return s.run(b) } },
		"peer": func() func() error { return s.peer(b) },
	} {
		b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
			before := machineTime(b)
			runtest.Throughput(b, workers, worker)
			b.ReportMetric(float64((machineTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/run")
		})
	}
}

// machineTime is the time that all processors together have worked.
func machineTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 7 { // the name, idle, waiting for disks, guests (which are in user time)
			continue
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}
