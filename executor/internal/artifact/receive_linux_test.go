// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/artifact"
)

// sent demands the same of Send and Receive.
func (f fixture) sent(t testing.TB, r artifact.Request, artifacts []executor.Artifact, refusals []executor.Refusal) {
	t.Helper()
	var stream bytes.Buffer
	check(t, artifact.Send(t.Context(), r, &stream))
	r.Root, r.Dest = nil, f.dest+"-sent"
	got, refused, err := artifact.Receive(t.Context(), r, &stream)
	check(t, err)
	if diff := cmp.Diff(artifacts, got); diff != "" {
		t.Errorf("artifacts (-extracted +received):\n%s", diff)
	}
	if diff := cmp.Diff(refusals, refused); diff != "" {
		t.Errorf("refusals (-extracted +received):\n%s", diff)
	}
	fixture{dest: r.Dest}.verify(t, got)
}

func TestExtractReplaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outside := t.TempDir()
	for _, name := range []string{"file", "link", "dir", "linkdir/x", "innerlink/x", "blocked/x"} {
		f.write(t, name, "new")
	}
	check(t, os.WriteFile(filepath.Join(outside, "victim"), []byte("old"), 0o600))
	for _, dest := range []string{f.dest, f.dest + "-sent"} {
		in := func(name string) string { return filepath.Join(dest, name) }
		check(t, os.MkdirAll(in("dir/old"), 0o700))
		check(t, os.MkdirAll(in("inner"), 0o700))
		check(t, os.WriteFile(in("file"), []byte("old and longer"), 0o444))
		check(t, os.WriteFile(in("blocked"), nil, 0o600))
		check(t, os.Symlink(filepath.Join(outside, "victim"), in("link")))
		check(t, os.Symlink(outside, in("linkdir")))
		check(t, os.Symlink("inner", in("innerlink")))
	}

	taken, refused := f.take(t, f.request(t, "**"))
	want(t, "taken", taken, []string{"file", "link"})
	want(t, "refused", keys(refused), []string{"blocked/x", "dir", "innerlink/x", "linkdir/x"})
	if data, err := os.ReadFile(filepath.Join(outside, "victim")); string(data) != "old" {
		t.Errorf("a link in the destination was followed: %q, %v", data, err)
	}
	if list, err := os.ReadDir(outside); len(list) != 1 {
		t.Errorf("written outside: %v, %v", list, err)
	}
}

// text is a text of the stream, file the beginning of a file, seg a segment.
func text(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

func sentFile(p string, segments ...string) string {
	return "a" + text(p) + "\x00" + strings.Join(segments, "")
}

func seg(kind byte, n uint64, data string) string {
	return string(binary.AppendUvarint([]byte{kind}, n)) + data
}

// lies are streams that no honest sender sends.
func lies() map[string]string {
	good := sentFile("out/a", seg('s', 1, "A"), "e")
	return map[string]string{
		"nothing":             "",
		"no end":              good,
		"more":                good + "z" + "more",
		"unknown item":        "q" + text("x"),
		"absolute":            sentFile("/etc/passwd", "e") + "z",
		"up":                  sentFile("out/../../x", "e") + "z",
		"dot":                 sentFile(".", "e") + "z",
		"not clean":           sentFile("out//a", "e") + "z",
		"NUL":                 sentFile("out/a\x00b", "e") + "z",
		"empty":               sentFile("", "e") + "z",
		"git":                 sentFile("out/.git/hooks/pre-commit", "e") + "z",
		"git in disguise":     sentFile("out/.GIT /x", "e") + "z",
		"excluded":            sentFile("out/secret/x", "e") + "z",
		"excluded name":       sentFile("out/deep/.env", "e") + "z",
		"undeclared":          sentFile("other", "e") + "z",
		"deep":                sentFile("out/"+strings.Repeat("d/", executor.ArtifactDepth)+"x", "e") + "z",
		"twice":               good + good + "z",
		"too many":            sentFile("out/1", "e") + sentFile("out/2", "e") + sentFile("out/3", "e") + sentFile("out/4", "e") + "z",
		"too large":           sentFile("out/a", seg('h', 101, ""), "e") + "z",
		"huge":                sentFile("out/a", seg('h', 1<<62, ""), "e") + "z",
		"too large together":  sentFile("out/a", seg('h', 60, ""), "e") + sentFile("out/b", seg('h', 60, ""), "e") + "z",
		"dropped without end": strings.Repeat(sentFile("out/a", seg('h', 90, ""), "x"), 1) + sentFile("out/a", "e") + "z",
		"long segment":        sentFile("out/a", seg('s', 1<<20, ""), "e") + "z",
		"mode":                "a" + text("out/a") + "\x02" + "ez",
		"unknown segment":     sentFile("out/a", seg('q', 1, "x"), "e") + "z",
		"long text":           "a" + string(binary.AppendUvarint(nil, 1<<40)),
		"number without end":  "a" + strings.Repeat("\xff", 12),
		"long reason":         "r" + text("p") + text(strings.Repeat("x", 2000)) + "z",
		"refusals":            strings.Repeat("r"+text("p")+text("why"), 3000) + "z",
	}
}

func receiving(t testing.TB) artifact.Request {
	return artifact.Request{
		ID: "run", Patterns: []string{"out/**"}, Dest: filepath.Join(t.TempDir(), "dest"), MaxBytes: 100, MaxFiles: 3,
		Exclude: []string{"out/secret"}, ExcludeNames: []string{".env"},
	}
}

func TestReceiveLies(t *testing.T) {
	t.Parallel()
	for name, data := range lies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receiving(t)
			_, _, err := artifact.Receive(t.Context(), r, strings.NewReader(data))
			if !errors.Is(err, artifact.ErrStream) {
				t.Errorf("error %v", err)
			}
			if left := temporary(t, r.Dest); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// What the destination does not take is refused like in Extract, and the files behind it still come.
func TestReceiveTakenPlace(t *testing.T) {
	t.Parallel()
	r := receiving(t)
	check(t, os.MkdirAll(filepath.Join(r.Dest, "out/a/full"), 0o700))
	long := "out/" + strings.Repeat("x", 300)
	data := sentFile("out/a", seg('s', 1, "A"), "e") + sentFile(long, seg('s', 1, "L"), "e") + sentFile("out/b", seg('s', 1, "B"), "e") + "z"
	got, refused, err := artifact.Receive(t.Context(), r, strings.NewReader(data))
	check(t, err)
	if len(got) != 1 || got[0].Path != "out/b" || len(refused) != 2 || refused[0].Path != "out/a" || refused[1].Path != long {
		t.Errorf("artifacts %v, refusals %v", got, refused)
	}
}

// A reader that fails is not an end.
func TestReceiveReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(sentFile("out/a", seg('s', 5, "ab"))), readerFunc(func([]byte) (int, error) { return 0, broken }))
	r := receiving(t)
	if _, _, err := artifact.Receive(t.Context(), r, in); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if left := temporary(t, r.Dest); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzReceive: whatever comes, only declared files within the bounds come to lie in the destination.
func FuzzReceive(f *testing.F) {
	for _, data := range lies() {
		f.Add([]byte(data))
	}
	f.Add([]byte(sentFile("out/a", seg('s', 1, "A"), seg('h', 3, ""), "e") + "r" + text("p") + text("q") + "z"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := receiving(t)
		artifacts, _, _ := artifact.Receive(t.Context(), r, bytes.NewReader(data))
		reported := map[string]int64{}
		total := int64(0)
		for _, a := range artifacts {
			reported[a.Path] = a.Size
			total += a.Size
		}
		if total > r.MaxBytes || len(artifacts) > r.MaxFiles {
			t.Errorf("%d bytes in %d files", total, len(artifacts))
		}
		_ = filepath.WalkDir(r.Dest, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(r.Dest, p)
			fi, err := d.Info()
			check(t, err)
			if size, ok := reported[rel]; !ok || size != fi.Size() || !fi.Mode().IsRegular() || !strings.HasPrefix(rel, "out/") {
				t.Errorf("%s, %v, %d bytes", rel, fi.Mode(), fi.Size())
			}
			return nil
		})
	})
}
