// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evoseal/containment/rollback/internal/object"
)

// manifestJSON is the body of a manifest.
type manifestJSON struct {
	Version int               `json:"version"`
	Store   string            `json:"store"`
	Seq     uint64            `json:"seq"`
	Time    time.Time         `json:"time"`
	Kind    Kind              `json:"kind"`
	Parent  ID                `json:"parent"`
	TreeKey string            `json:"tree_key"`
	Tree    rawText           `json:"tree"`
	Root    rootJSON          `json:"root"`
	Exclude []rawText         `json:"exclude"`
	Limits  Limits            `json:"limits"`
	Owner   bool              `json:"owner"`
	Xattrs  bool              `json:"xattrs"`
	Label   string            `json:"label"`
	Values  map[string]string `json:"values"`
	Files   int               `json:"files"`
	Dirs    int               `json:"dirs"`
	Links   int               `json:"links"`
	Bytes   int64             `json:"bytes"`
	Added   int64             `json:"added"`
	Skipped ID                `json:"skipped"`
}

type rootJSON struct {
	Mode    uint32      `json:"mode"`
	UID     uint32      `json:"uid"`
	GID     uint32      `json:"gid"`
	Sec     int64       `json:"sec"`
	Nsec    uint32      `json:"nsec"`
	Tree    ID          `json:"tree"`
	Content ID          `json:"content"`
	Xattrs  []xattrJSON `json:"xattrs"`
}

type xattrJSON struct {
	Name  rawText `json:"name"`
	Value []byte  `json:"value"`
}

// rawText is bytes that are text nearly always, such as a path. What is not valid UTF-8, and "%", is written as "%" with
// two hexadecimal digits, since JSON would put a replacement character in its place.
type rawText string

// MarshalText is what encoding/json calls.
func (t rawText) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(t)) && !strings.Contains(string(t), "%") {
		return []byte(t), nil
	}
	var b strings.Builder
	for rest := string(t); rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if r == '%' || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02x", rest[0])
		} else {
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return []byte(b.String()), nil
}

// UnmarshalText is the inverse. It is lenient: decodeStrict compares the two forms.
func (t *rawText) UnmarshalText(text []byte) error {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return fmt.Errorf("%q ends within an escape", text)
		}
		c, err := hex.DecodeString(string(text[i+1 : i+3]))
		if err != nil {
			return err
		}
		b.WriteByte(c[0])
		i += 2
	}
	*t = rawText(b.String())
	return nil
}

func (m *manifest) encode() manifestJSON {
	j := manifestJSON{
		Version: manifestVersion, Store: m.Store, Seq: m.Seq, Time: m.Time, Kind: m.Kind, Parent: m.Parent,
		TreeKey: m.TreeKey, Tree: rawText(m.Tree), Exclude: make([]rawText, len(m.Exclude)), Limits: m.Limits,
		Owner: m.Owner, Xattrs: m.Xattrs, Label: m.Meta.Label, Values: m.Meta.Values,
		Files: m.Files, Dirs: m.Dirs, Links: m.Links, Bytes: m.Bytes, Added: m.Added, Skipped: ID(m.Skipped),
		Root: rootJSON{
			Mode: m.Root.Mode, UID: m.Root.UID, GID: m.Root.GID, Sec: m.Root.Sec, Nsec: m.Root.Nsec,
			Tree: ID(m.Root.Data.Hash), Content: ID(m.Root.Content), Xattrs: make([]xattrJSON, len(m.Root.Xattrs)),
		},
	}
	for i, pattern := range m.Exclude {
		j.Exclude[i] = rawText(pattern)
	}
	for i, x := range m.Root.Xattrs {
		j.Root.Xattrs[i] = xattrJSON{Name: rawText(x.Name), Value: []byte(x.Value)}
	}
	if j.Values == nil {
		j.Values = map[string]string{}
	}
	return j
}

func (j *manifestJSON) decode() manifest {
	m := manifest{
		Store: j.Store, Seq: j.Seq, Time: j.Time, Kind: j.Kind, TreeKey: j.TreeKey, Tree: string(j.Tree),
		Parent: j.Parent, Exclude: make([]string, len(j.Exclude)), Limits: j.Limits, Owner: j.Owner, Xattrs: j.Xattrs,
		Meta:  Meta{Label: j.Label, Parent: j.Parent, Values: j.Values},
		Files: j.Files, Dirs: j.Dirs, Links: j.Links, Bytes: j.Bytes, Added: j.Added, Skipped: object.Hash(j.Skipped),
		Root: object.Entry{
			Kind: object.Dir, Mode: j.Root.Mode, UID: j.Root.UID, GID: j.Root.GID, Sec: j.Root.Sec, Nsec: j.Root.Nsec,
			Data: object.Key{Type: object.Tree, Hash: object.Hash(j.Root.Tree)}, Content: object.Hash(j.Root.Content),
		},
	}
	for i, pattern := range j.Exclude {
		m.Exclude[i] = string(pattern)
	}
	for _, x := range j.Root.Xattrs {
		m.Root.Xattrs = append(m.Root.Xattrs, object.Xattr{Name: string(x.Name), Value: string(x.Value)})
	}
	return m
}
