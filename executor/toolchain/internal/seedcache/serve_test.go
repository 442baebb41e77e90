// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	action = sum("action")
	other  = sum("other")
	body   = []byte("the output")
	output = sum(string(body))
	hello  = response{KnownCommands: []string{"get", "put", "close"}}
)

func sum(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }

// talk sends messages, bodies among them, and returns the answers.
func talk(t *testing.T, args []string, gocache string, messages ...any) ([]response, error) {
	t.Helper()
	var in, out bytes.Buffer
	for _, m := range messages {
		if err := json.NewEncoder(&in).Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	err := serve(args, gocache, &in, &out)
	var answers []response
	for d := json.NewDecoder(&out); ; {
		var a response
		if e := d.Decode(&a); errors.Is(e, io.EOF) {
			return answers, err
		} else if e != nil {
			t.Fatal(e)
		}
		answers = append(answers, a)
	}
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// makeSeed holds the action.
func makeSeed(t *testing.T) string {
	t.Helper()
	seed, name := t.TempDir(), hex.EncodeToString(output)
	save(t, filepath.Join(seed, "index"), hex.EncodeToString(action)+" "+name+" "+strconv.Itoa(len(body))+"\n")
	save(t, filepath.Join(seed, name+"-d"), string(body))
	return seed
}

func TestServe(t *testing.T) {
	t.Parallel()
	seed, gocache := makeSeed(t), t.TempDir()
	own := filepath.Join(gocache, "own", hex.EncodeToString(output)+"-d")
	want := []response{
		hello,
		{ID: 1, OutputID: output, Size: int64(len(body)), DiskPath: filepath.Join(seed, hex.EncodeToString(output)+"-d")},
		{ID: 2, Miss: true},
		{ID: 3, DiskPath: own},
		{ID: 4, OutputID: output, Size: int64(len(body)), DiskPath: own},
		{ID: 5, Err: `unknown command "trim"`},
		{ID: 6},
	}
	got, err := talk(t, []string{"seed", seed}, gocache,
		request{ID: 1, Command: "get", ActionID: action}, request{ID: 2, Command: "get", ActionID: other},
		request{ID: 3, Command: "put", ActionID: other, OutputID: output, BodySize: int64(len(body))}, body,
		request{ID: 4, Command: "get", ActionID: other}, request{ID: 5, Command: "trim"}, request{ID: 6, Command: "close"},
		request{ID: 7, Command: "get", ActionID: action},
	)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The next go command of the run finds it, and an empty output is one.
	empty := sum("empty")
	got, err = talk(t, []string{"seed", seed}, gocache, request{ID: 1, Command: "get", ActionID: other},
		request{ID: 2, Command: "put", ActionID: empty, OutputID: sum("")}, request{ID: 3, Command: "get", ActionID: empty})
	if err != nil || len(got) != 4 || got[1].DiskPath != own || got[3].Miss || got[3].Size != 0 {
		t.Errorf("%+v %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(gocache, "own", "new-*")); len(left) != 0 {
		t.Errorf("%q", left)
	}
}

// With record, entries come from a go command's own cache, if they are whole.
func TestRecord(t *testing.T) {
	t.Parallel()
	id, out := hex.EncodeToString(action), hex.EncodeToString(output)
	line := "v1 " + id + " " + out + "                   10  1700000000000000000\n"
	for name, tt := range map[string]struct {
		entry, content string
		found          bool
	}{
		"whole":          {line, string(body), true},
		"other content":  {line, "the 0utput", false},
		"short content":  {line, "", false},
		"other version":  {strings.Replace(line, "v1", "v2", 1), string(body), false},
		"other action":   {strings.Replace(line, id, hex.EncodeToString(other), 1), string(body), false},
		"not an output":  {strings.Replace(line, out, "../../etc/passwd", 1), string(body), false},
		"nothing inside": {"", string(body), false},
	} {
		disk, gocache := t.TempDir(), t.TempDir()
		save(t, inDisk(disk, id, "-a"), tt.entry)
		save(t, inDisk(disk, out, "-d"), tt.content)
		got, err := talk(t, []string{"record", disk}, gocache, request{ID: 1, Command: "get", ActionID: action})
		if err != nil || len(got) != 2 || got[1].Miss == tt.found || got[1].Err != "" {
			t.Errorf("%s: %+v %v", name, got, err)
			continue
		}
		copied, _ := os.ReadFile(filepath.Join(gocache, "own", out+"-d"))
		if (string(copied) == string(body)) != tt.found {
			t.Errorf("%s: recorded %q", name, copied)
		}
	}
}

func TestCannotServe(t *testing.T) {
	t.Parallel()
	bad := t.TempDir()
	save(t, filepath.Join(bad, "index"), "only two\n")
	size := t.TempDir()
	save(t, filepath.Join(size, "index"), "a b c\n")
	for name, tt := range map[string]struct {
		args    []string
		gocache string
	}{
		"no arguments":    {nil, t.TempDir()},
		"another word":    {[]string{"x", "y"}, t.TempDir()},
		"no seed":         {[]string{"seed", filepath.Join(bad, "none")}, t.TempDir()},
		"a bad line":      {[]string{"seed", bad}, t.TempDir()},
		"a bad size":      {[]string{"seed", size}, t.TempDir()},
		"relative cache":  {[]string{"seed", makeSeed(t)}, "cache"},
		"no cache at all": {[]string{"seed", makeSeed(t)}, ""},
	} {
		if got, err := talk(t, tt.args, tt.gocache); err == nil || len(got) != 0 {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// Whatever is sent, the seed is not written to, and the end of the input ends the program.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"ID":1,"Command":"get","ActionID":"YQ=="}`))
	f.Add([]byte(`{"ID":1,"Command":"put","ActionID":"YQ==","OutputID":"Yg==","BodySize":3} "YWJj" {"Command":"close"}`))
	f.Add([]byte(`{"ID":1,"Command":"put","OutputID":"","BodySize":-1}[]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		seed := makeSeed(t)
		index, _ := os.ReadFile(filepath.Join(seed, "index"))
		err := serve([]string{"seed", seed}, t.TempDir(), bytes.NewReader(in), io.Discard)
		after, _ := os.ReadFile(filepath.Join(seed, "index"))
		if entries, _ := os.ReadDir(seed); len(entries) != 2 || !bytes.Equal(index, after) {
			t.Errorf("the seed has changed: %v %v", entries, err)
		}
	})
}
