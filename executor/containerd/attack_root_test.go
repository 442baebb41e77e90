// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd_test

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

// link is an entry of an archive that leads elsewhere.
func link(name, target string) file { return file{name, int64(fs.ModeSymlink) | 0o777, []byte(target)} }

// libraryDirs are where Debian and others keep libraries.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib",
	"/usr/lib"}

// shellFiles are programs of this host and what they need, for a root without the host's directories.
func shellFiles(t *testing.T, programs ...string) (files []file) {
	t.Helper()
	have := map[string]bool{}
	var add func(source, name string, mode int64)
	add = func(source, name string, mode int64) {
		if have[name] {
			return
		}
		have[name] = true
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if !have[dir] {
				have[dir] = true
				files = append(files, file{dir + "/", 0o755, nil})
			}
		}
		files = append(files, file{name, mode, data})
		f, err := elf.Open(source)
		if err != nil {
			return // a script, or no program at all
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				loader := make([]byte, p.Filesz-1)
				if _, err := p.ReadAt(loader, 0); err != nil {
					t.Fatal(err)
				}
				add(string(loader), strings.TrimPrefix(string(loader), "/"), 0o755)
			}
		}
		libraries, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range libraries {
			for _, dir := range libraryDirs {
				if _, err := os.Stat(filepath.Join(dir, l)); err == nil {
					add(filepath.Join(dir, l), "lib/"+l, 0o755)
					break
				}
			}
		}
	}
	for _, p := range programs {
		add(p, "bin/"+filepath.Base(p), 0o4755) // set-id bits are inert in a box
	}
	slices.SortStableFunc(files, func(a, b file) int { return strings.Count(a.name, "/") - strings.Count(b.name, "/") })
	return files
}

// secretNames are names that programs keep secrets under.
func secretNames() (names []string) {
	for _, who := range []string{"AWS", "GITHUB", "GOOGLE", "AZURE", "OPENAI", "NPM", "DOCKER", "SSH", "DATABASE",
		"VAULT"} {
		for _, what := range []string{
			"TOKEN", "SECRET", "PASSWORD", "API_KEY", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "CREDENTIALS", "PRIVATE_KEY", "URL",
			"AUTH", "PASSPHRASE", "SESSION_TOKEN", "CLIENT_SECRET", "AUTH_SOCK", "CONFIG", "PAT", "WEBHOOK", "DSN", "CERT",
			"COOKIE",
		} {
			names = append(names, who+"_"+what)
		}
	}
	return names
}

// Two hundred secrets in the environments of host program, daemon and image: a run sees its own variables, byte for
// byte.
func TestSecrets(t *testing.T) {
	needDaemon(t)
	dir := shortDir(t)
	canary := "canary-" + filepath.Base(dir)
	script, image := "#!/bin/sh\n", []string{}
	for _, name := range secretNames() {
		t.Setenv(name, canary)
		script += fmt.Sprintf("export %s=%s\n", name, canary)
		image = append(image, name+"="+canary)
	}
	binary := filepath.Join(dir, "containerd")
	if err := os.WriteFile(binary, []byte(script+"exec /usr/bin/containerd \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, containerd.DaemonConfig{Dir: filepath.Join(dir, "d"), Binary: binary})
	if !holdsInEnvironment(t, d.Socket(), canary) {
		t.Fatal("the daemon does not have the secrets: nothing would be proven")
	}
	path := archive(t, shellFiles(t, "/bin/sh", "/usr/bin/env", "/bin/cat"), image...)
	for name, root := range map[string]containerd.Root{"skeleton": {Reads: hostReads}, "archive": {Archive: path}} {
		ex := newSite(t, d.Socket()).open(t, containerd.Config{Root: root})
		spec := executor.Spec{Args: []string{"/bin/env", "-0"}, Env: map[string]string{"MINE": "a\nb"}}
		want := spec.Environ("/box/home", "/box/tmp")
		r := mustExit(t, ex, spec, 0)
		got := strings.Split(strings.TrimSuffix(r.Stdout.String(), "\x00"), "\x00")
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: environment (-want +got):\n%s", name, diff)
		}
		spec.Args = []string{"/bin/sh", "-c", "cat /proc/self/status /proc/*/environ 2>/dev/null; true"}
		out := mustExit(t, ex, spec, 0).Stdout.String()
		for _, line := range []string{"Uid:\t10001\t10001\t10001\t10001", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(out, line) {
				t.Errorf("%s: %q is missing in %q", name, line, out)
			}
		}
		if strings.Contains(out, canary) {
			t.Errorf("%s: a secret is visible: %q", name, out)
		}
	}
}

// holdsInEnvironment looks into the environment of the daemon behind a socket.
func holdsInEnvironment(t *testing.T, socket, canary string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		line, _ := os.ReadFile(name)
		if strings.Contains(string(line), filepath.Dir(socket)+"/config.toml") {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "environ"))
			return strings.Contains(string(text), canary)
		}
	}
	return false
}

// snapshot lists a directory of the host, which nothing may change.
func snapshot(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			list = append(list, fmt.Sprintf("%s %v %d %v", path, fi.Mode(), fi.Size(), fi.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Roots that try to lead the runtime out: links in place of everything that it mounts on or masks (CVE-2025-31133). The
// box works as any other one; the host is not touched.
func TestRootTricks(t *testing.T) {
	t.Parallel()
	at := daemon(t)
	host := shortDir(t)
	if err := os.WriteFile(filepath.Join(host, "marker"), []byte("marker"), 0o666); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, host)
	up := strings.Repeat("../", 12) + strings.TrimPrefix(host, "/")
	for name, links := range map[string][]file{
		"mount points": {
			link("proc", up), link("dev", up), link("run", up), link("tmp", up), link("box", up), link(".containment", up),
		},
		"absolute": {
			link("proc", host), link("dev", "/proc/self/fd"), link("run", "/proc/1/root"), link("box", "/proc/self/cwd"),
		},
		"below": {
			{"dev/", 0o755, nil}, link("dev/null", "/proc/sysrq-trigger"), link("dev/shm", up), link("dev/console", up),
			link("dev/ptmx", up),
		},
		"masks": {{"proc/", 0o755, nil}, link("proc/kcore", up), link("proc/sys", up), {"sys/", 0o755, nil},
			link("sys/firmware", up)},
	} {
		files := append(shellFiles(t, "/bin/sh", "/bin/cat", "/bin/ls"), links...)
		ex := at.open(t, containerd.Config{Root: containerd.Root{Archive: archive(t, files)}})
		script := `for p in /proc /dev /dev/shm /run /tmp /box /box/workspace . .. /sys; do
				cat $p/marker; echo x > $p/written
			done; echo x > /dev/null; ls -ld /proc/self/exe; true`
		r := mustExit(t, ex, executor.Spec{Args: []string{"/bin/sh", "-c", script}}, 0)
		if strings.Contains(r.Stdout.String(), "marker") {
			t.Errorf("%s: the host's marker was read: %q", name, r.Stdout.String())
		}
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, host)); diff != "" {
		t.Errorf("the host was changed (-before +after):\n%s", diff)
	}
}

// A working directory that is a link out of the workspace, in the shapes that led runtimes out (CVE-2024-21626), is not
// entered.
func TestDirTricks(t *testing.T) {
	t.Parallel()
	ex := usual(t)
	workspace := t.TempDir()
	for shape, target := range map[string]string{
		"fd": "/proc/self/fd/7", "fd0": "/proc/self/fd/0", "first": "/proc/1/cwd", "root": "/proc/1/root", "up": "../..",
		"hidden": "/.containment",
	} {
		if err := os.Symlink(target, filepath.Join(workspace, shape)); err != nil {
			t.Fatal(err)
		}
		spec := executor.Spec{Args: []string{"pwd", "-P"}, Workspace: workspace, Dir: shape}
		r, err := ex.Run(t.Context(), spec)
		if _, ok := errors.AsType[*executor.SetupError](err); !ok {
			t.Errorf("a working directory at %s: %+v, %v", target, r, err)
		}
	}
}

// A directory as a root is refused if a mount point is a link: the runtime would follow it as root of the host.
func TestDirectoryTricks(t *testing.T) {
	t.Parallel()
	here := daemon(t)
	for _, point := range []string{"proc", "dev", "run", "tmp", "box", ".containment"} {
		dir := filepath.Join(shortDir(t), "root")
		for _, d := range []string{"proc", "dev", "run", "tmp", "box", ".containment", "bin"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		at := filepath.Join(dir, point)
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/tmp", at); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, here.config(containerd.Config{Root: containerd.Root{Directory: dir}}), point)
	}
}
