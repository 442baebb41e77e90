// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

var noHash = strings.Repeat("0", 64)

const goodHeader = `"header":{"format":1,"kind":"test","id":"run/7 \"é\"","data":{}}`

// verdict opens a file of these lines, each of which gets its checksum.
func verdict(t *testing.T, bodies ...string) error {
	t.Helper()
	var data []byte
	for _, body := range bodies {
		data = append(data, journal.Seal(body)...)
	}
	_, _, err := content(t, data)
	return err
}

// Lines with a good checksum that no version of this package writes.
func TestHeaders(t *testing.T) {
	t.Parallel()
	front := func(n int, prev string) string { return fmt.Sprintf(`{"n":%d,"prev":"%s",`, n, prev) }
	other := strings.Repeat("ab", 32)
	withSnapshot := strings.TrimSuffix(goodHeader, "}") + `,"snapshot":{}}`
	for _, good := range []string{front(0, noHash) + goodHeader, front(7, other) + withSnapshot} {
		if err := verdict(t, good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		front(0, noHash) + strings.Replace(goodHeader, `"format":1`, `"format":2`, 1),
		front(0, noHash) + strings.Replace(goodHeader, `"data":{}`, `"data":[]`, 1),
		front(0, noHash) + strings.Replace(goodHeader, `"data":{}`, `"data":{},"more":1`, 1),
		front(0, noHash) + strings.Replace(goodHeader, `,"data":{}`, ``, 1),
		front(0, noHash) + strings.Replace(goodHeader, `"kind"`, `"Kind"`, 1),
		front(0, noHash) + withSnapshot,
		front(7, other) + goodHeader,
		front(7, other) + strings.Replace(withSnapshot, `"snapshot":{}`, `"snapshot":null`, 1),
		front(7, other) + strings.Replace(withSnapshot, `"snapshot":{}`, `"snapshot":[1]`, 1),
		front(0, other) + goodHeader,
		front(7, strings.ToUpper(other)) + withSnapshot,
		front(7, other[1:]) + withSnapshot,
		front(7, other+"ab") + withSnapshot,
		front(7, "xy"+other[2:]) + withSnapshot,
		front(-1, other) + withSnapshot,
		front(0, noHash) + " " + goodHeader,
		front(0, noHash) + `"data":{}`,
		"", "[", "null", `{"n":0}`,
	} {
		if err := verdict(t, bad); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", bad, err)
		}
	}
}

func TestRecordLines(t *testing.T) {
	t.Parallel()
	header := fmt.Sprintf(`{"n":0,"prev":"%s",`, noHash) + goodHeader
	front := fmt.Sprintf(`{"n":1,"prev":"%x",`, sha256.Sum256(journal.Seal(header)))
	for _, good := range []string{`"data":{}`, `"data":{"a":[{}]}`, `"cut":1`, `"cut":65535`} {
		if err := verdict(t, header, front+good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`"data":[1]`, `"data":1`, `"data":null`, `"data":`, `"data": {}`, `"data":{},"x":{}`, `"data":{}}`, "\"data\":{\"\xff\":1}",
		`"cut":0`, `"cut":-1`, `"cut":65536`, `"cut":01`, `"cut":+1`, `"cut":1.0`, `"cut":`, `"cut":99999999999999999999`, `"cut":"1"`,
		`"more":{}`, `"Data":{}`, ` "data":{}`, ``, goodHeader,
	} {
		if err := verdict(t, header, front+bad); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", bad, err)
		}
	}
}

// overtaken is a directory in which another process creates the journal between the first look and the lock.
type overtaken struct {
	*memFS
	t *testing.T
}

func (o overtaken) Open(name string, how journal.OpenMode) (journal.File, error) {
	if how == journal.CreateOrOpen && o.names[name] == nil {
		closeIt(o.t, create(o.t, memConfig(o.memFS)))
	}
	return o.memFS.Open(name, how)
}

func TestCreateOvertaken(t *testing.T) {
	t.Parallel()
	m := newMemFS()
	cfg := memConfig(m)
	cfg.FS = overtaken{m, t}
	_, err := journal.Create(cfg, []byte(`{}`))
	wantError(t, err, journal.ErrExist)
	closeIt(t, open(t, memConfig(m)))
}

// pulled is a directory in which somebody removes a file right after it was opened: a lock on it keeps nobody out any more.
type pulled struct {
	*memFS
	victim string
}

func (p pulled) Open(name string, how journal.OpenMode) (journal.File, error) {
	f, err := p.memFS.Open(name, how)
	if name == p.victim && how != journal.ReadOnly {
		delete(p.names, name)
	}
	return f, err
}

func TestPulledAwayDuringOpen(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{name + ".journal", name + ".created"} {
		m := newMemFS()
		closeIt(t, create(t, memConfig(m)))
		cfg := memConfig(m)
		cfg.FS = pulled{m, victim}
		_, err := journal.Open(cfg)
		wantError(t, err, journal.ErrBroken)
	}
	cfg := memConfig(newMemFS())
	cfg.FS = pulled{cfg.FS.(*memFS), name + ".created"}
	_, err := journal.Create(cfg, []byte(`{}`))
	wantError(t, err, journal.ErrBroken)
}
