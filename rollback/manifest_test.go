// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/rollback/internal/object"
)

// fullManifest has every field in use.
func fullManifest() manifest {
	return manifest{
		Store: strings.Repeat("0a", 16), Seq: 7, Time: time.Date(2024, 2, 29, 1, 2, 3, 4, time.UTC), Kind: Safety, Parent: ID{1},
		TreeKey: strings.Repeat("ab", 16), Tree: "/work/100%\xff\nx",
		Root: object.Entry{
			Kind: object.Dir, Mode: 0o1755, UID: 1, GID: 2, Sec: -3, Nsec: 4, Data: object.Sum(object.Tree, nil),
			Content: object.Hash{5}, Xattrs: []object.Xattr{{Name: "user.a\xfe", Value: "\x00\xff"}, {Name: "user.b", Value: ""}},
		},
		Exclude: []string{"a", "b\xff"}, Limits: Limits{}.withDefaults(), Owner: true, Xattrs: true,
		Meta:  Meta{Label: "<l>", Parent: ID{1}, Values: map[string]string{"b": "2", "a": "1"}},
		Files: 1, Dirs: 2, Links: 3, Bytes: 4, Added: 5, Skipped: object.Hash{6},
	}
}

func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{nil, []byte("k")} {
		want := fullManifest()
		data, id, err := encodeManifest(&want, key)
		if err != nil || id != sha256.Sum256(data) {
			t.Fatal(err)
		}
		got, err := decodeManifest(data, key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if _, err := decodeManifest(data, []byte("other")); err == nil {
			t.Error("another key is accepted")
		}
		if _, err := decodeManifest(data, nil); (err == nil) != (key == nil) {
			t.Errorf("without a key: %v", err)
		}
	}
}

// TestManifestChanges: whatever byte is changed, and wherever it ends, a manifest is refused or says the same. Its name
// would tell too; this is about the form.
func TestManifestChanges(t *testing.T) {
	t.Parallel()
	m := fullManifest()
	data, _, err := encodeManifest(&m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[i/8] ^= 1 << (i % 8)
		m, err := decodeManifest(bad, nil)
		if err != nil {
			continue
		}
		if again, _, err := encodeManifest(&m, nil); err != nil || !bytes.Equal(again, bad) {
			t.Errorf("bit %d of byte %d: accepted, but %v", i%8, i/8, err)
		}
	}
	for n := range data {
		if _, err := decodeManifest(data[:n], nil); err == nil {
			t.Errorf("the first %d bytes are accepted", n)
		}
	}
}

// body makes a manifest of any JSON.
func body(json string) []byte {
	b := binary.BigEndian.AppendUint32([]byte(manifestMagic), uint32(len(json)))
	return append(b, json...)
}

func TestManifestIsStrict(t *testing.T) {
	t.Parallel()
	m := fullManifest()
	data, _, err := encodeManifest(&m, nil)
	if err != nil {
		t.Fatal(err)
	}
	json := string(data[manifestHead:])
	if _, err := decodeManifest(body(json), nil); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown field":      {`"version":1,`, `"version":1,"x":1,`},
		"duplicate key":      {`"version":1,`, `"version":1,"version":1,`},
		"another case":       {`"version"`, `"Version"`},
		"white space":        {`,"seq"`, `, "seq"`},
		"order":              {`"owner":true,"xattrs":true`, `"xattrs":true,"owner":true`},
		"order of values":    {`"a":"1","b":"2"`, `"b":"2","a":"1"`},
		"missing field":      {`"owner":true,`, ``},
		"old version":        {`"version":1,`, `"version":0,`},
		"null list":          {`"values":{"a":"1","b":"2"}`, `"values":null`},
		"no number":          {`"seq":7`, `"seq":0`},
		"negative count":     {`"files":1`, `"files":-1`},
		"fraction":           {`"files":1`, `"files":1.0`},
		"kind":               {`"kind":2`, `"kind":3`},
		"no kind":            {`"kind":2`, `"kind":0`},
		"mode":               {`"mode":1005`, `"mode":33005`},
		"nanoseconds":        {`"nsec":4`, `"nsec":1000000000`},
		"no tree":            {`"tree":"/work`, `"tree":"","y":"`},
		"tree key with path": {`"tree_key":"abab`, `"tree_key":"../b`},
		"upper-case ID":      {`"parent":"01`, `"parent":"0A`},
		"time with zone":     {`03.000000004Z`, `03.000000004+00:00`},
		"escape too much":    {`100%25`, `100%25%41`},
		"no limits":          {`"Files":1000000`, `"Files":0`},
		"trailing":           {"}", "}"},
	} {
		changed := strings.Replace(json, change[0], change[1], 1)
		if name == "trailing" {
			changed = json + "\n"
		} else if changed == json {
			t.Errorf("%s: nothing to change", name)
		}
		if _, err := decodeManifest(body(changed), nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	later := body(strings.Replace(json, `"version":1,`, `"version":2,"x":[],`, 1))
	if _, err := decodeManifest(later, nil); !errors.Is(err, ErrFormat) {
		t.Errorf("a later version: %v", err)
	}
}

func TestManifestTooLarge(t *testing.T) {
	t.Parallel()
	m := fullManifest()
	m.Exclude = slices.Repeat([]string{strings.Repeat("x", 1000)}, 2000)
	if _, _, err := encodeManifest(&m, nil); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestRawText(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"", "a", "%", "%41", "\xff%\xfe", "ü\u2028\x00", "\ufffd"} {
		text, err := rawText(want).MarshalText()
		var got rawText
		if err := errors.Join(err, got.UnmarshalText(text)); err != nil || string(got) != want {
			t.Errorf("%q becomes %q and %q, %v", want, text, got, err)
		}
	}
	for _, bad := range []string{"%", "%4", "%zz"} {
		var got rawText
		if err := got.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	m := fullManifest()
	data, _, err := encodeManifest(&m, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(body(`{"version":1}`))
	f.Add(body(`{"version":99}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data, nil)
		if err != nil {
			return
		}
		if again, _, err := encodeManifest(&m, nil); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q is accepted and not canonical, %v", data, err)
		}
	})
}
