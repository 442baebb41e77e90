// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/isolation"
	"github.com/google/go-cmp/cmp"
)

// quietSources are places in which there is nothing to be seen: one user, no credentials, a public endpoint.
func quietSources(t *testing.T) isolation.Sources {
	t.Helper()
	return isolation.Sources{
		Generator: isolation.GeneratorIdentity{Endpoint: "https://api.example.net/v1", Provider: "example", Model: "big-1"},
		EnvNames:  []string{"HOME", "PATH", "PWD", "LANG"},
		Files:     []string{filepath.Join(t.TempDir(), "absent"), filepath.Join(t.TempDir(), "id_*")},
		Proc:      fakeProc(t, map[int]int{1: 0, 70: 1000, 71: 1000, 72: 65534, 73: 61200, 74: 101}, "0::/user.slice\n"),
	}
}

// fakeProc is a procfs with these processes and their users.
func fakeProc(t *testing.T, users map[int]int, cgroup string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "self", "cgroup"), cgroup)
	put(t, filepath.Join(dir, "uptime"), "1 1\n")
	for pid, uid := range users {
		text := fmt.Sprintf("Name:\tx\nUid:\t%d\t0\t0\t0\nGid:\t0\t0\t0\t0\n", uid)
		put(t, filepath.Join(dir, fmt.Sprint(pid), "status"), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestObserveQuiet(t *testing.T) {
	t.Parallel()
	got := isolation.Observe(t.Context(), quietSources(t))
	want := quietObserved()
	want.Evidence = map[isolation.Fact]string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Zero sources: nobody has looked.
func TestObserveZero(t *testing.T) {
	t.Parallel()
	got := isolation.Observe(t.Context(), isolation.Sources{})
	for _, fact := range []isolation.Fact{isolation.FactGenerator, isolation.FactHost, isolation.FactSecrets} {
		if !strings.Contains(got.Evidence[fact], "Sources.") {
			t.Errorf("%v: %q does not say what to fill in", fact, got.Evidence[fact])
		}
	}
	got.Evidence = nil
	if diff := cmp.Diff(isolation.Observed{ExternalSideEffects: isolation.No}, got); diff != "" {
		t.Error(diff)
	}
}

func TestObserveGenerator(t *testing.T) {
	t.Parallel()
	for want, endpoints := range map[isolation.GeneratorTrust][]string{
		isolation.TrustedProvider: {
			"https://api.example.net", "api.example.net:443", "https://api.example.net./v1", "HTTPS://API.EXAMPLE.NET",
			"https://8.8.8.8/v1", "https://[2606:4700::1111]:443/", "https://user:pw@api.example.net/", "https://172.32.0.1",
			"wss://api-2.example.co.uk",
		},
		isolation.Local: {
			"http://localhost:11434", "localhost", "LOCALHOST:80", "http://localhost./", "http://a.localhost", "http://ollama:11434",
			"http://127.0.0.1:8000/v1", "127.0.0.1", "http://127.1", "http://127.0.0.1.:80", "http://0x7f.1/", "http://0x7f000001",
			"http://2130706433/", "http://017700000001", "http://0.0.0.0:1", "http://[::]:1", "http://[::1]:80", "http://[::ffff:127.0.0.1]",
			"http://[::ffff:10.0.0.1]", "http://[64:ff9b::7f00:1]", "http://[64:ff9b:1::1]", "http://10.1.2.3", "http://172.16.0.1",
			"http://172.31.255.255", "http://192.168.1.1", "http://169.254.169.254", "http://100.64.0.1", "http://[fe80::1%25eth0]",
			"http://[fd00::1]", "http://[fec0::1]", "http://box.local", "http://gpu.internal", "http://gpu.corp", "http://gpu.home.arpa",
			"http://x.svc.cluster.local", "http://host.docker.internal", "unix:///run/ollama.sock", "unix:/run/x", "/run/ollama.sock",
			"@abstract", "file:///models/x.gguf", "http+unix://%2Frun%2Fx.sock/v1", "npipe:////./pipe/x", "vsock:2:80",
			"https://api.example.net@127.0.0.1/", "https://127.0.0.1#api.example.net", "http://１２７.0.0.1", "http://ⓛocalhost.example",
			"http://api.example.net:80@localhost", "https://198.18.0.1", "https://240.0.0.1", "https://a.b..", "http://a.9",
		},
		isolation.GeneratorUnknown: {"http://", "://x", "http://[::1", "https://exa mple.net", "\x00", "http:///path", ":80"},
	} {
		s := quietSources(t)
		for _, endpoint := range endpoints {
			s.Generator = isolation.GeneratorIdentity{Endpoint: endpoint}
			got := isolation.Observe(t.Context(), s)
			if got.Generator != want {
				t.Errorf("%q: got %v, want %v (%s)", endpoint, got.Generator, want, got.Evidence[isolation.FactGenerator])
			}
			if strings.Contains(got.Evidence[isolation.FactGenerator], "pw") {
				t.Errorf("%q: the password is in the evidence", endpoint)
			}
		}
	}
}

func TestObserveModel(t *testing.T) {
	t.Parallel()
	const public = "https://api.example.net"
	for _, c := range []struct {
		id   isolation.GeneratorIdentity
		want isolation.GeneratorTrust
	}{
		{isolation.GeneratorIdentity{Provider: "anthropic", Model: "big-1"}, isolation.TrustedProvider},
		{isolation.GeneratorIdentity{Provider: "example"}, isolation.GeneratorUnknown}, // where, and what?
		{isolation.GeneratorIdentity{Model: "big-1"}, isolation.GeneratorUnknown},      // whose, and where?
		{isolation.GeneratorIdentity{Provider: "Ollama", Model: "x"}, isolation.Local},
		{isolation.GeneratorIdentity{Endpoint: public, Provider: "llama.cpp"}, isolation.Local},
		{isolation.GeneratorIdentity{Endpoint: public, Provider: " vLLM "}, isolation.Local},
		{isolation.GeneratorIdentity{Endpoint: public, Provider: "LM Studio"}, isolation.Local},
		{isolation.GeneratorIdentity{Endpoint: public, Model: "evolved-7"}, isolation.SelfTuned},
		{isolation.GeneratorIdentity{Endpoint: public, Model: " Vendor/EVOLVED-7:latest "}, isolation.SelfTuned},
		{isolation.GeneratorIdentity{Endpoint: "http://localhost", Model: "/models/evolved-7.gguf"}, isolation.SelfTuned},
		{isolation.GeneratorIdentity{Endpoint: public, Model: "ft:base:me::1"}, isolation.SelfTuned},
		{isolation.GeneratorIdentity{Endpoint: public, Model: "evolved-70"}, isolation.TrustedProvider},
		{isolation.GeneratorIdentity{Endpoint: public, Address: "10.0.0.7"}, isolation.Local},
		{isolation.GeneratorIdentity{Endpoint: public, Address: "9.9.9.9"}, isolation.TrustedProvider},
		{isolation.GeneratorIdentity{Endpoint: public, Address: "nine"}, isolation.GeneratorUnknown},
		{isolation.GeneratorIdentity{}, isolation.GeneratorUnknown},
	} {
		s := quietSources(t)
		s.Generator, s.OwnModels = c.id, []string{"", "old-1", "evolved-7"}
		if got := isolation.Observe(t.Context(), s); got.Generator != c.want {
			t.Errorf("%+v: got %v, want %v (%s)", c.id, got.Generator, c.want, got.Evidence[isolation.FactGenerator])
		}
	}
}

func TestObserveHost(t *testing.T) {
	t.Parallel()
	const alone = "0::/user.slice\n"
	one := map[int]int{1: 0, 5: 1000}
	for what, c := range map[string]struct {
		spoil func(s *isolation.Sources)
		want  isolation.Host
	}{
		"two users":         {func(s *isolation.Sources) { s.Proc = fakeProc(t, map[int]int{1: 0, 5: 1000, 6: 1001}, alone) }, isolation.Shared},
		"directory service": {func(s *isolation.Sources) { s.Proc = fakeProc(t, map[int]int{1: 0, 5: 1000, 6: 200001}, alone) }, isolation.Shared},
		"a run's own user": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, map[int]int{1: 0, 5: 1000, 6: 200001}, alone)
			s.OwnUIDs = []isolation.UIDRange{{First: 200000, Count: 2}}
		}, isolation.SingleOperator},
		"beside the range": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, map[int]int{1: 0, 5: 1000, 6: 200002}, alone)
			s.OwnUIDs = []isolation.UIDRange{{First: 200000, Count: 2}, {First: 4294967295, Count: 4294967295}}
		}, isolation.Shared},
		"orchestrator":     {func(s *isolation.Sources) { s.EnvNames = append(s.EnvNames, "KUBERNETES_SERVICE_HOST") }, isolation.Shared},
		"container":        {func(s *isolation.Sources) { s.Proc = fakeProc(t, one, "0::/kubepods.slice/x\n") }, isolation.Shared},
		"hidden processes": {func(s *isolation.Sources) { s.Proc = fakeProc(t, map[int]int{5: 1000}, alone) }, isolation.HostUnknown},
		"no procfs":        {func(s *isolation.Sources) { s.Proc = filepath.Join(t.TempDir(), "absent") }, isolation.HostUnknown},
		"not given":        {func(s *isolation.Sources) { s.Proc = "" }, isolation.HostUnknown},
		"status without a user": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, one, alone)
			put(t, filepath.Join(s.Proc, "9", "status"), "Name:\tx\n")
		}, isolation.HostUnknown},
		"a user that is no number": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, one, alone)
			put(t, filepath.Join(s.Proc, "9", "status"), "Uid:\t-1\n")
		}, isolation.HostUnknown},
		"a status without end": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, one, alone)
			put(t, filepath.Join(s.Proc, "9", "status"), strings.Repeat("x", 1<<20))
		}, isolation.HostUnknown},
		"it has ended": {func(s *isolation.Sources) {
			s.Proc = fakeProc(t, one, alone)
			if err := os.Mkdir(filepath.Join(s.Proc, "9"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, isolation.SingleOperator},
	} {
		s := quietSources(t)
		c.spoil(&s)
		if got := isolation.Observe(t.Context(), s); got.Host != c.want {
			t.Errorf("%s: got %v, want %v (%s)", what, got.Host, c.want, got.Evidence[isolation.FactHost])
		}
	}
}

func TestObserveSecrets(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	put(t, filepath.Join(home, ".ssh", "id_rsa.pub"), "public")
	put(t, filepath.Join(home, ".ssh", "known_hosts"), "x")
	if err := os.Symlink("/nowhere/at/all", filepath.Join(home, "dangling")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(home, "aws", "credentials"), "x")
	put(t, filepath.Join(home, "keys", "id_ed25519"), "x")
	for what, c := range map[string]struct {
		spoil func(s *isolation.Sources)
		want  isolation.Secrets
	}{
		"public key only":      {func(s *isolation.Sources) { s.Files = []string{home + "/.ssh/id_*"} }, isolation.NoSecrets},
		"no such directory":    {func(s *isolation.Sources) { s.Files = []string{home + "/x/y/id_*", home + "/aws/credentials/x"} }, isolation.NoSecrets},
		"a file":               {func(s *isolation.Sources) { s.Files = []string{home + "/aws/credentials"} }, isolation.HighValue},
		"a directory":          {func(s *isolation.Sources) { s.Files = []string{home + "/aws"} }, isolation.HighValue},
		"a link to nothing":    {func(s *isolation.Sources) { s.Files = []string{home + "/dangling"} }, isolation.HighValue},
		"a pattern":            {func(s *isolation.Sources) { s.Files = []string{home + "/keys/id_*"} }, isolation.HighValue},
		"a socket's place":     {func(s *isolation.Sources) { s.Sockets = []string{home + "/aws/credentials"} }, isolation.HighValue},
		"a variable":           {func(s *isolation.Sources) { s.EnvNames = []string{"OPENAI_API_KEY"} }, isolation.HighValue},
		"a whole entry":        {func(s *isolation.Sources) { s.EnvNames = []string{"GH_TOKEN=hunter2"} }, isolation.HighValue},
		"a relative path":      {func(s *isolation.Sources) { s.Files = []string{"aws/credentials"} }, isolation.SecretsUnknown},
		"an impossible path":   {func(s *isolation.Sources) { s.Files = []string{home + "/a\x00b"} }, isolation.SecretsUnknown},
		"a bad pattern":        {func(s *isolation.Sources) { s.Files = []string{home + "/keys/[a-"} }, isolation.SecretsUnknown},
		"a file and a mistake": {func(s *isolation.Sources) { s.Files = []string{home + "/aws", "relative"} }, isolation.SecretsUnknown},
		"nothing given":        {func(s *isolation.Sources) { s.Files, s.Sockets, s.EnvNames = nil, nil, nil }, isolation.SecretsUnknown},
	} {
		s := quietSources(t)
		c.spoil(&s)
		got := isolation.Observe(t.Context(), s)
		if got.Secrets != c.want || strings.Contains(got.Evidence[isolation.FactSecrets], "hunter2") {
			t.Errorf("%s: got %v, want %v (%s)", what, got.Secrets, c.want, got.Evidence[isolation.FactSecrets])
		}
	}
}

func TestObserveNames(t *testing.T) {
	t.Parallel()
	for want, list := range map[isolation.Secrets][]string{
		isolation.HighValue: {"AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "DB_PASS", "NPM_AUTH",
			"SSH_AUTH_SOCK", "DOCKER_HOST", "apiKey", "SIGNING_KEY_2", "GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "KUBECONFIG", "MYSQL_PWD"},
		isolation.NoSecrets: {"HOME", "PATH", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "XDG_SESSION_ID", "LANG", "COMPASS", "GOPATH",
			"TOKYO", "AUTHOR", "PASSAGE", ""},
	} {
		for _, name := range list {
			s := quietSources(t)
			s.EnvNames = []string{"HOME", name}
			if got := isolation.Observe(t.Context(), s).Secrets; got != want {
				t.Errorf("%q: got %v, want %v", name, got, want)
			}
		}
	}
}

func TestObserveEgress(t *testing.T) {
	t.Parallel()
	s := quietSources(t)
	s.Egress = slices.Repeat([]string{"mirror.example.net:443"}, 1000)
	got := isolation.Observe(t.Context(), s)
	if text := got.Evidence[isolation.FactExternalSideEffects]; got.ExternalSideEffects != isolation.Yes || len(text) > 700 {
		t.Errorf("%v, %d bytes of evidence", got.ExternalSideEffects, len(text))
	}
}

// A context that has ended makes unknown what had to be looked for.
func TestObserveCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := isolation.Observe(ctx, quietSources(t))
	if got.Host != isolation.HostUnknown || got.Secrets != isolation.SecretsUnknown {
		t.Errorf("%+v", got)
	}
}

func TestHostSources(t *testing.T) {
	t.Parallel()
	environ := []string{"A_TOKEN=hunter2", "EMPTY=", "BARE", "SSH_AUTH_SOCK=/tmp/agent", "DOCKER_HOST=unix:///x/docker.sock",
		"CONTAINER_HOST=tcp://x", "XDG_RUNTIME_DIR=/run/user/7"}
	s := isolation.HostSources("/home/u", environ)
	if text := fmt.Sprint(s); strings.Contains(text, "hunter2") || strings.Contains(text, "tcp://x") {
		t.Errorf("a value is kept: %s", text)
	}
	for _, want := range []string{"/home/u/.aws/credentials", "/home/u/.ssh/id_*", "/home/u/.config/gcloud"} {
		if !slices.Contains(s.Files, filepath.FromSlash(want)) {
			t.Errorf("%q is not among %q", want, s.Files)
		}
	}
	for _, want := range []string{"/tmp/agent", "/x/docker.sock", "/run/user/7/podman/podman.sock", "/run/docker.sock"} {
		if !slices.Contains(s.Sockets, filepath.FromSlash(want)) {
			t.Errorf("%q is not among %q", want, s.Sockets)
		}
	}
	if diff := cmp.Diff([]string{"A_TOKEN", "EMPTY", "BARE", "SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST",
		"XDG_RUNTIME_DIR"}, s.EnvNames); diff != "" || s.Proc != "/proc" {
		t.Errorf("%s%s", s.Proc, diff)
	}
	if bare := isolation.HostSources("", nil); slices.ContainsFunc(bare.Files, func(f string) bool { return strings.Contains(f, "aws") }) {
		t.Errorf("no home, and %q", bare.Files)
	}
	s.Files = append(s.Files[:0], "changed")
	if slices.Contains(isolation.HostSources("", nil).Files, "changed") {
		t.Error("two calls share memory")
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{"http://localhost", "https://api.example.net@127.0.0.1", "127.1", "[::1]:80", "unix:/x", "%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		got := isolation.Observe(t.Context(), isolation.Sources{Generator: isolation.GeneratorIdentity{Endpoint: endpoint, Model: "m"}})
		if strings.Contains(endpoint, "127.0.0.1") && !strings.ContainsAny(endpoint, "@/?#:%.") && got.Generator == isolation.TrustedProvider {
			t.Errorf("%q is trusted", endpoint)
		}
	})
}
