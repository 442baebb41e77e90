// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openLog(t *testing.T, dir string, o *LogOptions) *Log {
	t.Helper()
	l, err := OpenLog(dir, "run-7", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // a second call is ErrClosed, and that is tested apart
	return l
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// kinds lists what is in a log.
func kinds(t *testing.T, dir string) (all []string) {
	t.Helper()
	for r, err := range ReadLog(dir, "run-7") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Kind.String())
	}
	return all
}

// seen is what somebody has seen who has looked everywhere and found nothing.
var seen = Observed{Generator: TrustedProvider, Host: SingleOperator, ExternalSideEffects: No, Secrets: NoSecrets}

func stateDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

func TestLogRoundTrip(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, nil)
	type body struct{ Text string }
	first, err := l.record(RecordPhase, body{"a <b> \u2028 \n"}, false)
	if err != nil || first.Seq != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := l.record(RecordVerdict, body{"b"}, true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range l.Records() {
		var b body
		if err != nil || json.Unmarshal(r.Body, &b) != nil || time.Since(r.At) > time.Minute || len(r.Hash) != 64 {
			t.Fatalf("%+v, %v", r, err)
		}
		got = append(got, r.Kind.String()+" "+b.Text)
	}
	if diff := cmp.Diff([]string{"phase a <b> \u2028 \n", "verdict b"}, got); diff != "" {
		t.Error(diff)
	}
	head := l.Head()
	if _, err := OpenLog(dir, "run-7", nil); !errors.Is(err, ErrLog) {
		t.Errorf("opened twice: %v", err)
	}
	closeLog(t, l)
	report, err := VerifyLog(dir, "run-7")
	if want := (LogReport{RunID: "run-7", Records: 2, Head: head}); err != nil || report != want {
		t.Errorf("%+v, %v; want %+v", report, err, want)
	}
	if l = openLog(t, dir, &LogOptions{MustExist: true}); l.Head() != head {
		t.Errorf("head %s, before %s", l.Head(), head)
	}
}

func TestLogRefuses(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	if _, err := OpenLog(dir, "run-7", &LogOptions{MustExist: true}); !errors.Is(err, ErrLog) {
		t.Errorf("there is none: %v", err)
	}
	for _, id := range []string{"", "../x", "a/b", "a b", strings.Repeat("x", 129), "\x00"} {
		if id == "" {
			continue // "isolation-" is a name, but the journal wants an id
		}
		if _, err := OpenLog(dir, id, nil); !errors.Is(err, ErrLog) {
			t.Errorf("run id %q: %v", id, err)
		}
	}
	if _, err := OpenLog(dir, "", nil); !errors.Is(err, ErrLog) {
		t.Errorf("no run id: %v", err)
	}
	l := openLog(t, dir, nil)
	for what, c := range map[string]struct {
		kind RecordKind
		body any
	}{
		"no kind":        {0, 1},
		"forged kind":    {99, 1},
		"no JSON":        {RecordNote, func() {}},
		"too large":      {RecordNote, strings.Repeat("x", 64<<10)},
		"half a permit":  {RecordOverride, permitBody{}},
		"other body":     {RecordDecision, "text"},
		"permit of kind": {RecordApproval, permitBody{Digest: "x", Override: goodOverride()}},
	} {
		if _, err := l.record(c.kind, c.body, true); !errors.Is(err, ErrLog) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := l.Note("goes on"); err != nil {
		t.Errorf("after refusals: %v", err)
	}
	closeLog(t, l)
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	for _, l := range []*Log{l, {}} { // the zero Log too
		appendErr := l.Note("too late")
		_, decideErr := l.decide(decideInput{})
		if !errors.Is(appendErr, ErrClosed) || !errors.Is(decideErr, ErrClosed) || l.Head() != "" {
			t.Errorf("not open: %v, %v", appendErr, decideErr)
		}
		for _, err := range l.Records() {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("not open: %v", err)
			}
		}
	}
}

// An edit, a gap and foreign content show, whoever looks.
func TestLogDamage(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(text string) string{
		"an edit":   func(s string) string { return strings.Replace(s, "second", "decond", 1) },
		"a gap":     func(s string) string { lines := strings.SplitAfter(s, "\n"); return lines[0] + lines[1] + lines[3] },
		"a swap":    func(s string) string { l := strings.SplitAfter(s, "\n"); return l[0] + l[2] + l[1] + l[3] },
		"no header": func(s string) string { return s[strings.Index(s, "\n")+1:] },
		"nothing":   func(string) string { return "" },
	} {
		dir := stateDir(t)
		l := openLog(t, dir, nil)
		for _, text := range []string{"first", "second", "third"} {
			if _, err := l.record(RecordNote, text, false); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, l)
		path := filepath.Join(dir, "isolation-run-7.journal")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(spoil(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		_, openErr := OpenLog(dir, "run-7", nil)
		_, verifyErr := VerifyLog(dir, "run-7")
		var readErr error
		for _, err := range ReadLog(dir, "run-7") {
			readErr = err
		}
		if !errors.Is(openErr, ErrLog) || !errors.Is(verifyErr, ErrLog) || !errors.Is(readErr, ErrLog) {
			t.Errorf("%s: %v, %v, %v", what, openErr, verifyErr, readErr)
		}
	}
	// A log that has vanished is not a new one.
	dir := stateDir(t)
	closeLog(t, openLog(t, dir, nil))
	if err := os.Remove(filepath.Join(dir, "isolation-run-7.journal")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir, "run-7", nil); !errors.Is(err, ErrLog) {
		t.Errorf("vanished: %v", err)
	}
}

// A write that a crash cut off is noted, and nothing else is lost.
func TestLogTorn(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, nil)
	if _, err := l.decide(decideInput{trust: attended(), observed: seen}); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	f, err := os.OpenFile(filepath.Join(dir, "isolation-run-7.journal"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(`{"n":3,"pre`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if r, err := VerifyLog(dir, "run-7"); err != nil || !r.Torn || r.Dropped != 11 || r.Records != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	l = openLog(t, dir, nil)
	if len(l.state.latched) != 1 {
		t.Errorf("latched: %+v", l.state.latched)
	}
	var cut int64
	for r, err := range l.Records() {
		if err != nil {
			t.Fatal(err)
		}
		cut += r.Cut
	}
	if cut != 11 {
		t.Errorf("%d bytes are noted as cut", cut)
	}
}
