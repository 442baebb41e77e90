// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"strings"
	"testing"
)

// Every row of the table of directives: the line is refused as an addition, allowed if granted by name, allowed if the
// base has it, and refused if it occurs more often than there.
func TestDirectiveLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, line, name string }{
		{"a.go", "//go:generate x", "go:generate"}, {"a.go", "//go:embed x", "go:embed"}, {"a.go", "//go:linkname a b", "go:linkname"},
		{"a.go", "//go:build ignore", "go:build"}, {"a.go", "  \t//go:noinline", "go:noinline"}, {"a.go", "//go:\u00e9", "go:\u00e9"},
		{"a.go", "\f//go:debug x=1", "go:debug"}, {"a.go", "//go:build\tx", "go:build"}, {"a.go", "//go:build\r", "go:build"},
		{"a.go", "//export f", "export"}, {"a.go", "//extern f", "extern"}, {"a.go", "//line x.go:1", "line"},
		{"a.go", "x := 1 /*line x.go:1*/", "line"}, {"a.go", "//sys f()", "sys"}, {"a.go", "//sysnb f()", "sys"},
		{"a.go", "// +build x", "build"}, {"a.go", "//+build x", "build"}, {"a.go", "//  +build x", "build"},
		{"a.go", "#cgo LDFLAGS: -lx", "cgo"}, {"a.go", "// #cgo LDFLAGS: -lx", "cgo"}, {"a.go", "//#cgo LDFLAGS: -lx", "cgo"},
		{"a.go", "/* #cgo LDFLAGS: -lx */", "cgo"}, {"a.go", "/* a */ /*#cgo LDFLAGS: -lx */", "cgo"}, {"a.go", " * #cgo LDFLAGS: -lx", "cgo"},
		{"a.go", "//\u00a0#cgo LDFLAGS: -lx", "cgo"}, {"a.go", "//\v#cgo LDFLAGS: -lx", "cgo"}, {"a.go", "//\u0085#cgo x", "cgo"},
		{"a.go", "// #c\rgo LDFLAGS: -lx", "cgo"}, {"a.go", "/**/ // x #cgo LDFLAGS: -lx", "cgo"}, {"a.go", "//\u2003*\u3000#cgo x", "cgo"},
		{"a.go", "//exp\rort f", "export"}, {"a.go", "/\r/export f", "export"}, {"a.go", "/**/ //export f", "export"},
		{"a.go", "/**/ //export\tf", "export"}, {"a.go", "/**/ //ex\rtern f", "extern"}, {"a.go", "/**/ //go:noinline", "go:noinline"},
		{"a.go", "/**/ /* */\v//go:noinline", "go:noinline"}, {"a.go", "/*li\rne x.go:1*/", "line"}, {"a.go", "//li\rne x.go:1", "line"},
		{"a.go", "//\rgo:noinline", "go:noinline"}, {"a.go", "//s\rys f()", "sys"}, {"a.go", "//\u00a0+build x", "build"},
		{"a.go", "//\u00a0+bu\rild x", "build"}, {"a.sx", "//go:build x", "go:build"}, {"a.s", "//go:build x", "go:build"}, {"A.GO", "//go:build x", "go:build"}, {"dir/a.S", "//line x:1", "line"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			base := "package p\n\nvar a = 1\n"
			once, twice := base+c.line+"\n", c.line+"\n"+base+"\t"+c.line+"\n"
			check := func(s scope, base, content string) Code {
				code, rule, detail := s.check(c.path, []byte(base), []byte(content), false)
				if rule != (Rule{}) || (code == "") != (detail == "") {
					t.Errorf("rule %+v, detail %q", rule, detail)
				}
				return code
			}
			if got := check(scope{}, base, once); got != ErrDirective {
				t.Errorf("added: %q", got)
			}
			if got := check(scope{}, base, once+"\x00no go at all"); got != ErrDirective {
				t.Errorf("added to what does not parse: %q", got)
			}
			if got := check(scope{directives: map[string]bool{c.name: true}}, base, once); got != "" {
				t.Errorf("granted: %q", got)
			}
			if got := check(scope{directives: map[string]bool{"go": true, "go:": true, "": true, "other": true}}, base, once); got != ErrDirective {
				t.Errorf("something else is granted: %q", got)
			}
			if got := check(scope{}, once, c.line+"\n"+base); got != "" {
				t.Errorf("moved: %q", got)
			}
			if got := check(scope{}, once, base); got != "" {
				t.Errorf("removed: %q", got)
			}
			if got := check(scope{}, once, twice); got != ErrDirective {
				t.Errorf("doubled: %q", got)
			}
			if got := check(scope{}, once, strings.Replace(once, c.line, c.line+"x", 1)); got != ErrDirective && !strings.Contains(c.line, "*/") {
				t.Errorf("changed: %q", got)
			}
		})
	}
}

// Lines that no tool reads as a directive.
func TestNoDirective(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"// go:generate x", "//go: x", "//go:1", "x := 1 //go:generate x", "// export f", "x := 1 */ 2 //go:embed x", "//exporter", "//lines", "/* line x:1 */",
		"// line x:1", "// sys f", "#cg", "// # cgo", "//nolint:all", "\"//go:build x\"", "package p",
	} {
		if code, _, why := (scope{}).check("a.go", []byte("package p\n"), []byte("package p\n"+line+"\n"), false); code != "" {
			t.Errorf("%q: %s, %s", line, code, why)
		}
	}
}

func TestDirectivesByFile(t *testing.T) {
	t.Parallel()
	region := scope{regions: []regions{pyRegions}}
	wrap := func(s string) string { return "# evolve:begin\n" + s + "# evolve:end\n" }
	for _, c := range []struct {
		name, path string
		s          scope
		base, new  string
		creates    bool
		deny       bool
	}{
		{"text file", "a.md", scope{}, "", "//go:generate x\n#!x\n", false, false},
		{"python file, no region", "a.py", scope{}, "", "# coding: utf-7\n", false, false},
		{"any file under a region", "a.txt", region, wrap(""), wrap("//go:generate x\n"), false, true},
		{"coding in line 2", "a.py", region, wrap(""), wrap("# -*- coding: utf-7 -*-\n"), false, true},
		{"coding, vim form", "a.py", region, wrap(""), wrap("# vim: set fileencoding=utf-7 :\n"), false, true},
		{"coding behind a carriage return", "a.py", region, wrap(""), wrap("x\r#coding=utf-7\n"), false, true},
		{"coding in line 3", "a.py", region, wrap("\n"), wrap("\n# coding: utf-7\n"), false, false},
		{"coding moves up into line 2", "a.py", region, wrap("\n# coding: utf-7\n"), wrap("# coding: utf-7\n"), false, true},
		{"coding in another language", "a.txt", region, wrap(""), wrap("# coding: utf-7\n"), false, false},
		{"shebang", "a.go", scope{}, "package p\n", "#!/bin/sh\npackage p\n", false, true},
		{"shebang in line 2", "a.go", scope{}, "package p\n", "package p\n#!/bin/sh\n", false, false},
		{"shebang behind a byte order mark", "a.go", scope{}, "package p\n", "\uFEFF#!/bin/sh\npackage p\n", false, true},
		{"build behind a byte order mark", "a.go", scope{}, "package p\n", "\uFEFF//go:build ignore\npackage p\n", false, true},
		{"assembler file made", "a.s", scope{}, "", "RET\n", true, true},
		{"assembler file made, upper case", "a.S", scope{}, "", "RET\n", true, true},
		{"assembler file made, for the preprocessor", "a.sx", scope{}, "", "RET\n", true, true},
		{"assembler file made, for the preprocessor, upper case", "a.SX", scope{}, "", "RET\n", true, true},
		{"assembler file made, empty", "a.s", scope{}, "", "", true, true},
		{"assembler file made, granted", "a.s", scope{directives: map[string]bool{"asm": true}}, "", "RET\n", true, false},
		{"assembler file changed", "a.s", scope{}, "RET\n", "NOP\n", false, false},
		{"import C", "a.go", scope{}, "package p\n", "package p\nimport \"C\"\n", false, true},
		{"import C, granted", "a.go", scope{directives: map[string]bool{"cgo": true}}, "package p\n", "package p\nimport \"C\"\n", false, false},
		{"import C, in a group", "a.go", scope{}, "package p\n", "package p\nimport (\n\t\"fmt\"; \"C\"\n)\n", false, true},
		{"import C, raw", "a.go", scope{}, "package p\n", "package p\nimport `C`\n", false, true},
		{"import C, escaped", "a.go", scope{}, "package p\n", "package p\nimport \"\\x43\"\n", false, true},
		{"import C, kept", "a.go", scope{}, "package p\nimport \"C\"\n", "package p\n\nimport \"C\"\nvar a int\n", false, false},
		{"import C, in what does not parse", "a.go", scope{}, "package p\n", "package\nimport \"C\"\n", false, true},
		{"import C, base does not parse", "a.go", scope{}, "package\nvar c = \"C\"\n", "package p\nimport \"C\"\n", false, true},
		{"string C", "a.go", scope{}, "package p\n", "package p\nvar c = \"C\"\n", false, false},
		{"new file imports C", "a.go", scope{}, "", "package p\nimport \"C\"\n", true, true},
		{"not Go", "a.go", scope{}, "package p\n", "x\n", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var base []byte
			if !c.creates {
				base = []byte(c.base)
			}
			code, _, why := c.s.check(c.path, base, []byte(c.new), c.creates)
			if (code == ErrDirective) != c.deny || code != "" && code != ErrDirective {
				t.Errorf("code %q: %s", code, why)
			}
			if strings.Contains(why, "utf-7") || strings.Contains(why, "/bin/sh") {
				t.Errorf("the detail quotes the file: %s", why)
			}
		})
	}
}

// FuzzScope: no panic, and an unchanged file is never refused for its directives.
func FuzzScope(f *testing.F) {
	for _, c := range readRegionCases(f) {
		if c.Base != nil {
			f.Add(c.Path, []byte(*c.Base), []byte(c.New))
		}
	}
	f.Fuzz(func(t *testing.T, path string, base, content []byte) {
		s := scope{regions: []regions{pyRegions}, goBodies: []goBodies{{funcs: []string{"Score", "(*Pool).Next"}}}}
		for _, s := range []scope{s, {regions: s.regions}, {goBodies: s.goBodies}, {}} {
			if code, _, why := s.check(path, base, base, false); code == ErrDirective {
				t.Errorf("nothing changed: %s", why)
			}
			code, _, why := s.check(path, base, content, false)
			if (code == "") != (why == "") {
				t.Errorf("code %q, detail %q", code, why)
			}
		}
	})
}
