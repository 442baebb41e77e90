// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
)

// importsC reports whether a Go file imports "C", in any spelling of that string. If the imports do not parse, it
// answers unsure where the text has a string "C": the caller says which answer denies.
func importsC(src []byte, unsure bool) bool {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ImportsOnly|parser.SkipObjectResolution)
	if err != nil {
		return unsure && hasStringC(src)
	}
	for _, spec := range file.Imports {
		if isStringC(spec.Path.Value) {
			return true
		}
	}
	return false
}

func isStringC(literal string) bool {
	s, err := strconv.Unquote(literal)
	return err == nil && s == "C"
}

// hasStringC looks at all tokens of a text that is not Go as a whole.
func hasStringC(src []byte) bool {
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", fset.Base(), len(src)), src, nil, 0)
	for {
		switch _, tok, literal := s.Scan(); {
		case tok == token.EOF:
			return false
		case tok == token.STRING && isStringC(literal):
			return true
		}
	}
}
