// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	maxPath      = 4096 // bytes, as PATH_MAX on Linux
	maxComponent = 255  // bytes, as NAME_MAX
	// stagedPrefix starts the names of files that are staged, and that OpenTree sweeps.
	stagedPrefix = ".al-"
)

// checkPath tests the path grammar. It returns the code of the first test that fails, with a detail for a person, or an
// empty code. A path is refused, never repaired: a guard that repairs approves another name than the one it was asked
// about. The rules are those of every file system at once, since a tree may be checked out on another system than the
// one on which it was edited.
func checkPath(path string) (Code, string) {
	switch {
	case path == "":
		return ErrPathInvalid, "the path is empty"
	case len(path) > maxPath:
		return ErrPathInvalid, fmt.Sprintf("the path has %d bytes, more than %d", len(path), maxPath)
	case !utf8.ValidString(path):
		return ErrPathInvalid, "the path is not valid UTF-8"
	case path[0] == '/':
		return ErrPathEscapes, "the path is absolute"
	case path[0] == '~':
		return ErrPathEscapes, "the path starts with ~, which a shell expands to a home directory"
	case strings.Contains(path, `\`):
		return ErrPathEscapes, "the path contains a backslash, which separates components on some systems"
	}
	if code, detail := checkRunes(path); code != "" {
		return code, detail
	}
	if !norm.NFC.IsNormalString(path) {
		return ErrPathDisguised, "the path is not in Unicode normal form NFC"
	}
	for component := range strings.SplitSeq(path, "/") {
		if code, detail := checkComponent(component); code != "" {
			return code, detail
		}
	}
	return "", ""
}

// checkComponent tests one component of a path whose runes have been tested.
func checkComponent(c string) (Code, string) {
	switch {
	case c == "":
		return ErrPathInvalid, "a component is empty: a doubled or trailing slash"
	case c == "." || c == "..":
		return ErrPathEscapes, fmt.Sprintf("a component is %q", c)
	case len(c) > maxComponent:
		return ErrPathInvalid, fmt.Sprintf("a component has %d bytes, more than %d", len(c), maxComponent)
	case isStaged(c):
		return ErrPathInvalid, fmt.Sprintf("component %+q starts with %s, which is reserved for staged files", c, stagedPrefix)
	case c[0] == '-':
		return ErrPathDisguised, fmt.Sprintf("component %+q starts with -, which commands read as an option", c)
	case c[0] == ' ' || c[len(c)-1] == ' ' || c[len(c)-1] == '.':
		return ErrPathDisguised, fmt.Sprintf("component %+q starts or ends with a space or ends with a dot", c)
	case strings.ContainsAny(c, `:*?"<>|`):
		return ErrPathDisguised, fmt.Sprintf(`component %+q has one of : * ? " < > |`, c)
	case isShortName(c):
		return ErrPathDisguised, fmt.Sprintf("component %+q looks like a short name of Windows (a tilde and a digit)", c)
	case isDevice(c):
		return ErrPathDisguised, fmt.Sprintf("component %+q is the name of a device on Windows", c)
	}
	return "", ""
}

// isStaged also catches other spellings: a file system that folds case would let one replace a staged file.
func isStaged(c string) bool {
	if len(c) < len(stagedPrefix) || c[0] != '.' && c[0] < utf8.RuneSelf {
		return false
	}
	return strings.HasPrefix(foldKey(c), stagedPrefix)
}

// isShortName reports whether c may be the 8.3 alias of another name, such as GIT~1 for .git.
func isShortName(c string) bool {
	for i := range min(7, len(c)-1) {
		if c[i] == '~' && '0' <= c[i+1] && c[i+1] <= '9' {
			return true
		}
	}
	return false
}

// isDevice reports whether Windows takes c for a device: aux.go is one as much as AUX is.
func isDevice(c string) bool {
	stem, _, _ := strings.Cut(c, ".")
	stem = strings.TrimRight(stem, " ")
	if len(stem) < len("con") || len(stem) > len("conout$") {
		return false
	}
	stem = lowerASCII(stem)
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port, ok := strings.CutPrefix(stem, "com")
	if !ok {
		port, ok = strings.CutPrefix(stem, "lpt")
	}
	if !ok {
		return false
	}
	switch port {
	case "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
		return true
	}
	return false
}
