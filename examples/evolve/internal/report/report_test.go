// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// Whatever is drawn is well-formed XML with numbers in it.
func TestSVG(t *testing.T) {
	t.Parallel()
	levels := []Level{{"first fit", 5.74}, {"best fit", 5.37}}
	for name, c := range map[string]Curve{
		"nothing": {},
		"levels":  {Levels: levels},
		"one":     {Points: []Point{{1, 3, true}}},
		"flat":    {Points: []Point{{1, 3, true}, {2, 3, false}}},
		"zero":    {Points: []Point{{1, 0, true}}},
		"strange": {Title: `<script>"&'`, Unit: "<", Points: []Point{{0, 5.37, true}, {1, 400, false}, {2, 4, true}, {3, 3, true}}, Levels: levels},
	} {
		data := c.SVG()
		d := xml.NewDecoder(bytes.NewReader(data))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, data)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "<script"} {
			if bytes.Contains(data, []byte(bad)) {
				t.Errorf("%s: %s in\n%s", name, bad, data)
			}
		}
	}
	c := Curve{Points: []Point{{0, 5, true}, {1, 6, false}, {2, 4, true}}}
	if svg := string(c.SVG()); strings.Count(svg, "<circle") != 2 || !strings.Contains(svg, "best found 4.00") {
		t.Error(svg) // 6 is worse than all that counts, and is left out
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	for _, span := range []float64{0.001, 0.9, 1, 1.01, 2.5, 7, 99, 12345} {
		if n := span / step(span); n < 2 || n > 10+1e-9 || math.IsNaN(n) {
			t.Errorf("%v: %v parts", span, n)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "",
		"a\nb\tc":                 "a b c",
		"\x1b[2J\x07\x00":         `\x1b[2J\x07\x00`,
		"ä\u202eb":                `ä\x202eb`,
		"\xff":                    `\xfffd`,
		strings.Repeat("x", 2000): strings.Repeat("x", 1000) + "…",
	} {
		if got := Clean(in, 1000); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// What is no terminal gets lines only.
func TestPlain(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	term := NewTerminal(w)
	term.Status(func(time.Duration) string { return "status" })
	term.Println("one\x1b[31m")
	term.Print("two\n")
	term.Close()
	w.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "one\\x1b[31m\ntwo\n" {
		t.Errorf("%q %v", got, err)
	}
}

// On a terminal the status line is erased before anything else is printed.
func TestLive(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	term := &Terminal{w: &b, live: true, stop: make(chan struct{})}
	term.Status(func(time.Duration) string { return "busy" })
	term.Println("line")
	term.Close()
	if want := erase + "busy" + erase + "line\n" + erase + "busy" + erase; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
