// SPDX-License-Identifier: Apache-2.0

package object

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample has every field in use.
func sample() []Entry {
	blob := func(s string) Key { return Sum(Blob, []byte(s)) }
	return []Entry{
		{Name: "-rf\n\xff", Kind: File, Mode: 0o4755, UID: 1, GID: 2, Sec: -5, Nsec: 999_999_999, Size: 3, Data: blob("abc")},
		{Name: "a", Kind: Dir, Mode: 0o1777, Sec: 1 << 40, Data: Sum(Tree, []byte(treeMagic)), Content: ContentDigest(nil)},
		{Name: "big", Kind: File, Mode: 0o600, Size: MaxBlob + 1, Data: Sum(Chunks, []byte("x"))},
		{Name: "empty", Kind: File, Data: blob("")},
		{Name: "hard", Kind: File, Size: 1, Data: blob("h"), Group: "a/first"},
		{Name: "link", Kind: Link, Mode: 0o777, Target: "../../etc\n"},
		{Name: strings.Repeat("n", 255), Kind: File, Data: blob(""), Xattrs: []Xattr{{"user.a", ""}, {"user.b", "\x00\xff"}}},
	}
}

func TestTreeRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range [][]Entry{nil, sample(), sample()[2:3]} {
		got, err := DecodeTree(EncodeTree(want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(len(want), len(got)); diff != "" {
			t.Fatal(diff)
		}
		for i := range want {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestTreeRefuses: what this package never writes is not read, however well it is hashed.
func TestTreeRefuses(t *testing.T) {
	t.Parallel()
	file := func(name string) Entry { return Entry{Name: name, Kind: File, Data: Sum(Blob, nil)} }
	change := func(f func(*Entry)) []Entry {
		e := file("f")
		f(&e)
		return []Entry{e}
	}
	for name, entries := range map[string][]Entry{
		"unsorted":           {file("b"), file("a")},
		"duplicate":          {file("a"), file("a")},
		"empty name":         {file("")},
		"dot":                {file(".")},
		"dot dot":            {file("..")},
		"slash":              {file("a/b")},
		"absolute":           {file("/a")},
		"NUL":                {file("a\x00")},
		".git":               {file(".git")},
		".GIT":               {file(".GIT")},
		"ignored code point": {file(".g\u200cit")},
		"variation selector": {file(".git\ufe0f")},
		"unknown kind":       change(func(e *Entry) { e.Kind = 4 }),
		"no kind":            change(func(e *Entry) { e.Kind = 0 }),
		"type in the mode":   change(func(e *Entry) { e.Mode = 0o100644 }),
		"nanoseconds":        change(func(e *Entry) { e.Nsec = 1_000_000_000 }),
		"negative size":      change(func(e *Entry) { e.Size = -1 }),
		"file as tree":       change(func(e *Entry) { e.Data.Type = Tree }),
		"large as blob":      change(func(e *Entry) { e.Size = MaxBlob + 1 }),
		"small in chunks":    change(func(e *Entry) { e.Data.Type = Chunks }),
		"group upwards":      change(func(e *Entry) { e.Group = "a/../b" }),
		"absolute group":     change(func(e *Entry) { e.Group = "/b" }),
		"group in .git":      change(func(e *Entry) { e.Group = ".git/config" }),
		"empty target":       {{Name: "l", Kind: Link}},
		"NUL in target":      {{Name: "l", Kind: Link, Target: "a\x00b"}},
		"link in a group":    {{Name: "l", Kind: Link, Target: "a", Group: "k"}},
		"attributes":         change(func(e *Entry) { e.Xattrs = []Xattr{{"b", ""}, {"a", ""}} }),
		"same attribute":     change(func(e *Entry) { e.Xattrs = []Xattr{{"b", ""}, {"b", ""}} }),
		"nameless attribute": change(func(e *Entry) { e.Xattrs = []Xattr{{"", "x"}} }),
	} {
		if _, err := DecodeTree(EncodeTree(entries)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTreeFlagsAreStrict(t *testing.T) {
	t.Parallel()
	data := EncodeTree(sample()[3:4])
	for _, flags := range []byte{flagGroup, flagXattrs, 4, 0x80} {
		bad := slices.Clone(data)
		bad[len(treeMagic)+1] = flags
		if flags == flagGroup {
			bad = append(bad, 0, 0, 0, 0) // an empty group
		} else if flags == flagXattrs {
			bad = append(bad, 0, 0) // no attributes
		}
		if _, err := DecodeTree(bad); err == nil {
			t.Errorf("flags %#x: accepted", flags)
		}
	}
}

// TestTreeTruncatedAndExtended: no prefix passes but one that ends between entries, and nothing may follow.
func TestTreeTruncatedAndExtended(t *testing.T) {
	t.Parallel()
	data, ends := EncodeTree(sample()), map[int]bool{}
	for i := range sample() {
		ends[len(EncodeTree(sample()[:i]))] = true
	}
	for n := range data {
		if _, err := DecodeTree(data[:n]); (err == nil) != ends[n] {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := DecodeTree(append(slices.Clone(data), 0)); err == nil {
		t.Error("a byte more: accepted")
	}
}

func TestIsGit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".gIt": true, ".g\u200dit": true, "\ufeff.git": true, ".git\U000e0001": true, ".gi\u00adt": true,
		".gitignore": false, "git": false, ".gi": false, "": false, ".git2": false, ".gıt": false, ".git\xff": false, "a.git": false,
		".git ": false, "git~1": false, // names like others on the file systems that this package runs on
	} {
		if IsGit(name) != want {
			t.Errorf("IsGit(%q) = %v", name, !want)
		}
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	h := Sum(Blob, []byte("x")).Hash
	full, hole := Chunk{Hash: h, Len: ChunkLen}, Chunk{Len: 3 * ChunkLen, Hole: true}
	for name, c := range map[string]struct {
		chunks []Chunk
		ok     bool
	}{
		"full":               {[]Chunk{full, full, full}, true},
		"short last":         {[]Chunk{full, full, {Hash: h, Len: 1}}, true},
		"only a hole":        {[]Chunk{{Len: 1 << 40, Hole: true}}, true},
		"hole of odd length": {[]Chunk{full, full, {Len: 5, Hole: true}}, true},
		"hole between":       {[]Chunk{full, hole, full}, true},
		"none":               {nil, false},
		"too small":          {[]Chunk{full, full}, false},
		"two holes":          {[]Chunk{hole, hole}, false},
		"empty":              {[]Chunk{full, full, {Hash: h}}, false},
		"negative":           {[]Chunk{full, full, {Hash: h, Len: -1}}, false},
		"off the grid":       {[]Chunk{{Hash: h, Len: 5}, full, full, full}, false},
		"hole off the grid":  {[]Chunk{{Len: 5, Hole: true}, full, full, full}, false},
		"too long":           {[]Chunk{full, full, {Hash: h, Len: ChunkLen + 1}}, false},
		"hole with a hash":   {[]Chunk{full, {Hash: h, Len: 3 * ChunkLen, Hole: true}}, false},
		"overflow": {[]Chunk{
			{Len: 1<<63 - ChunkLen, Hole: true}, full, {Len: 1<<63 - ChunkLen, Hole: true}, full,
		}, false},
	} {
		got, err := DecodeChunks(EncodeChunks(c.chunks))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.chunks, got); c.ok && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	list := []Omission{{"a\xff", "FIFO"}, {"b/c", "mount"}}
	got, err := DecodeSkipped(EncodeSkipped(list))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]Omission{{{"b", ""}, {"a", ""}}, {{"a", ""}, {"a", ""}}, {{"", "x"}}} {
		if _, err := DecodeSkipped(EncodeSkipped(bad)); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

// TestDigests: each digest changes with what it promises to cover, and Content with nothing else.
func TestDigests(t *testing.T) {
	t.Parallel()
	type effect struct{ tree, content bool }
	for name, c := range map[string]struct {
		change func(e []Entry)
		want   effect
	}{
		"nothing":    {func([]Entry) {}, effect{}},
		"name":       {func(e []Entry) { e[0].Name = "-rg" }, effect{true, true}},
		"bytes":      {func(e []Entry) { e[0].Data = Sum(Blob, []byte("abd")) }, effect{true, true}},
		"x bit":      {func(e []Entry) { e[0].Mode = 0o4644 }, effect{true, true}},
		"w bit":      {func(e []Entry) { e[0].Mode = 0o4777 }, effect{true, false}},
		"owner":      {func(e []Entry) { e[0].UID = 9 }, effect{true, false}},
		"time":       {func(e []Entry) { e[0].Sec++ }, effect{true, false}},
		"nanosecond": {func(e []Entry) { e[0].Nsec-- }, effect{true, false}},
		"dir mode":   {func(e []Entry) { e[1].Mode = 0o700 }, effect{true, false}},
		"below":      {func(e []Entry) { e[1].Content[0]++; e[1].Data.Hash[0]++ }, effect{true, true}},
		"group":      {func(e []Entry) { e[4].Group = "" }, effect{true, false}},
		"target":     {func(e []Entry) { e[5].Target = "x" }, effect{true, true}},
		"attribute":  {func(e []Entry) { e[6].Xattrs = nil }, effect{true, false}},
		"kind":       {func(e []Entry) { e[3] = Entry{Name: "empty", Kind: Link, Target: "x"} }, effect{true, true}},
	} {
		entries := sample()
		c.change(entries)
		got := effect{
			tree:    string(EncodeTree(entries)) != string(EncodeTree(sample())),
			content: ContentDigest(entries) != ContentDigest(sample()),
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	root := Entry{Kind: Dir, Mode: 0o755, Data: Sum(Tree, nil)}
	other := root
	other.Mode = 0o700
	if RootDigest(root) == RootDigest(other) {
		t.Error("the root's mode is not in its digest")
	}
}

func FuzzDecodeTree(f *testing.F) {
	f.Add(EncodeTree(nil))
	f.Add(EncodeTree(sample()))
	for _, e := range sample() {
		f.Add(EncodeTree([]Entry{e}))
	}
	f.Add([]byte("rbT1\x01\x02\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := DecodeTree(data)
		if err == nil && string(EncodeTree(entries)) != string(data) {
			t.Errorf("%q is accepted and not canonical", data)
		}
	})
}

func FuzzDecodeChunks(f *testing.F) {
	h := Sum(Blob, []byte("x")).Hash
	f.Add(EncodeChunks(nil))
	f.Add(EncodeChunks([]Chunk{{Hash: h, Len: ChunkLen}, {Len: 2 * ChunkLen, Hole: true}, {Hash: h, Len: 7}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		chunks, err := DecodeChunks(data)
		if err == nil && string(EncodeChunks(chunks)) != string(data) {
			t.Errorf("%q is accepted and not canonical", data)
		}
	})
}

func FuzzDecodeSkipped(f *testing.F) {
	f.Add(EncodeSkipped(nil))
	f.Add(EncodeSkipped([]Omission{{"a", "b"}, {"c", ""}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := DecodeSkipped(data)
		if err == nil && string(EncodeSkipped(list)) != string(data) {
			t.Errorf("%q is accepted and not canonical", data)
		}
	})
}
