// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"testing"
)

const (
	licenceLine = "// SPDX-License-Identifier: Apache-2.0"
	maxLines    = 400
)

func TestEveryFileHasItsLicence(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if first, _, _ := strings.Cut(string(f.data), "\n"); first != licenceLine {
			t.Errorf("%s: the first line must be %q", f.name, licenceLine)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if n := bytes.Count(f.data, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: it holds more than one idea", f.name, n, maxLines)
		}
	}
}

// machineTraces are texts that tell where a file was written. They are put together from parts, so that this file does
// not contain them.
var machineTraces = regexp.MustCompile(strings.Join([]string{
	`/wo` + `rk/(main|shared|\.library)`, // a checkout
	`/ro` + `ot/(go|\.cache|\.pyenv)`,    // somebody's caches
	`/ho` + `me/[a-z]+/(go|src)/`,
	`/Use` + `rs/[A-Za-z]+/`,
	`(proxy|sum)\.gol` + `ang\.org`, // registries; which one is used is for the reader's environment to say
	`registry\.np` + `mjs\.org`, `deb\.deb` + `ian\.org`, `art` + `ifactory`, `goproxy\.`,
}, "|"))

func TestNoTraceOfAMachine(t *testing.T) {
	t.Parallel()
	walk(t, func(name string, data []byte) {
		if bytes.IndexByte(data, 0) >= 0 {
			return // not text
		}
		for number, line := range strings.Split(string(data), "\n") {
			if trace := machineTraces.FindString(line); trace != "" {
				t.Errorf("%s:%d: names %q, which is a matter of one machine", name, number+1, trace)
			}
		}
	})
}

// TestPlatformPairs: a file for Linux alone leaves the package broken elsewhere unless something stands beside it.
func TestPlatformPairs(t *testing.T) {
	t.Parallel()
	linux, other := map[string]bool{}, map[string]bool{}
	for _, f := range goFiles(t) {
		dir, base := path.Split(f.name)
		switch {
		case strings.HasSuffix(base, "_test.go"):
		case strings.HasSuffix(base, "_linux.go"):
			linux[dir] = true
		default:
			other[dir] = true
		}
	}
	for dir := range linux {
		if !other[dir] {
			t.Errorf("%s has files for Linux only; add a doc.go, and a _other.go for what callers use", dir)
		}
	}
}
