// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/rollback/internal/object"
)

func sampleJournal() *journal {
	root := &object.Entry{Sec: -3, Nsec: 999_999_999}
	file := known{Kind: object.File, Data: object.Sum(object.Blob, []byte("x"))}
	return &journal{
		Store: "store", TreeKey: "tree", Staging: stagingName(stagingTag("store", "tree"), root),
		To: ID{1}, Safety: ID{2}, Foreign: ForeignQuarantine, MTime: MTimeTouch,
		Changes: []Change{{".", Attributes}, {"a/\xff\n", Create}},
		Opened:  []opened{{Path: "ro", Mode: 0o500, Back: true}},
		Slots: []slot{
			{Path: "a/\xff\n", Now: file},
			{Path: "b", Was: file, Now: known{Kind: object.Link, Target: "../x"}},
			{Path: "fifo", Foreign: "special file"},
		},
	}
}

func TestJournalRoundTrip(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{nil, []byte("secret")} {
		for _, j := range []*journal{sampleJournal(), {Staging: sampleJournal().Staging,
			Changes: []Change{}, Opened: []opened{}, Slots: []slot{}}} {
			got, err := decodeJournal(key, j.encode(key))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(j, got); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// TestJournalRefusesEveryChange: each bit, each shorter length, a byte more, another key.
func TestJournalRefusesEveryChange(t *testing.T) {
	t.Parallel()
	good := sampleJournal().encode(nil)
	for i := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := decodeJournal(nil, bad); err == nil {
			t.Errorf("bit %d is believed", i)
		}
	}
	for i := range good {
		if _, err := decodeJournal(nil, good[:i]); err == nil {
			t.Errorf("%d of %d bytes are believed", i, len(good))
		}
	}
	if _, err := decodeJournal(nil, append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte more is believed")
	}
	if _, err := decodeJournal([]byte("key"), good); err == nil {
		t.Error("a journal without the key's checksum is believed")
	}
}

// TestJournalFields: a checksum proves who wrote it, not that it makes sense.
func TestJournalFields(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*journal){
		"staging above":   func(j *journal) { j.Staging = "../.rollback-x" },
		"any directory":   func(j *journal) { j.Staging = "src" },
		"kept":            func(j *journal) { j.Staging = keptPrefix + "0-0-0123456789abc" },
		"path above":      func(j *journal) { j.Slots[0].Path = "../x" },
		"absolute":        func(j *journal) { j.Slots[0].Path = "/x" },
		"two spellings":   func(j *journal) { j.Opened[0].Path = "a/./b" },
		"empty path":      func(j *journal) { j.Changes[0].Path = "" },
		"NUL":             func(j *journal) { j.Changes[0].Path = "a\x00" },
		"operation":       func(j *journal) { j.Changes[0].Op = 77 },
		"mode":            func(j *journal) { j.Opened[0].Mode = 0o10000 },
		"policy":          func(j *journal) { j.Foreign = 9 },
		"time policy":     func(j *journal) { j.MTime = 9 },
		"kind":            func(j *journal) { j.Slots[0].Now.Kind = object.Dir },
		"object type":     func(j *journal) { j.Slots[0].Now.Data.Type = object.Tree },
		"link to nothing": func(j *journal) { j.Slots[1].Now.Target = "" },
	} {
		j := sampleJournal()
		change(j)
		if _, err := decodeJournal(nil, j.encode(nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzJournal: whatever is accepted is what would be written.
func FuzzJournal(f *testing.F) {
	body := func(b []byte) []byte { return b[len(journalMagic)+8 : len(b)-32] }
	f.Add(body(sampleJournal().encode(nil)))
	f.Add(body((&journal{Staging: sampleJournal().Staging}).encode(nil)))
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &journalReader{rest: string(data)}
		j := r.journal()
		if r.bad || r.rest != "" {
			return
		}
		if got := body(j.encode(nil)); !bytes.Equal(got, data) {
			t.Errorf("%q was read and %q would be written", data, got)
		}
	})
}

func TestStagingNames(t *testing.T) {
	t.Parallel()
	root := &object.Entry{Sec: -1 << 40, Nsec: 5}
	tag := stagingTag("store", "tree")
	name := stagingName(tag, root)
	if got, sec, nsec, ok := parseStaging(name); !ok || got != tag || sec != root.Sec || nsec != 5 {
		t.Errorf("%q: %s, %d, %d, %t", name, got, sec, nsec, ok)
	}
	if tag == stagingTag("stor", "etree") {
		t.Error("two trees have one tag")
	}
	for _, bad := range []string{"", ".rollback-", keptPrefix + txid(name), name + "-", name + "x", name[1:],
		name[:len(name)-1],
		".rollback-" + tag + "-0-40000000-0123456789abc", ".rollback-" + tag + "-+1-0-0123456789abc",
		".rollback-" + tag + "-01-0-0123456789abc", ".rollback-" + tag + "-F-0-0123456789abc",
		".rollback-" + tag + "-1-0-../../../etc/"} {
		if _, _, _, ok := parseStaging(bad); ok {
			t.Errorf("%q is taken for staging", bad)
		}
	}
}
