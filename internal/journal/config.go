// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// The longest strings of a Config, in bytes.
const (
	maxName  = 200 // with a suffix it must fit into the 255 bytes of a directory entry
	maxLabel = 1024
)

// The files of a journal, as suffixes of its name.
const (
	suffixJournal = ".journal"
	suffixCreated = ".created"
	suffixNew     = ".new" // what will replace the journal; whatever is in it is never read
)

// checked returns the configuration with its defaults, or an error that says what is wrong with it.
func (c Config) checked(op string) (Config, error) {
	rule := ""
	switch {
	case !validName(c.Name):
		rule = "the name must be letters, digits and \"-_.\", not begin with a dot and have at most 200 bytes"
	case c.FS == nil && c.Dir == "":
		rule = "no directory is named"
	case !validLabel(c.Kind) || !validLabel(c.ID):
		rule = "kind and id must be UTF-8 of 1 to 1024 bytes"
	case c.MaxSize != 0 && c.MaxSize < MaxRecord:
		rule = "the maximum size is less than that of one record"
	}
	if rule != "" {
		return c, &Error{Op: op, Path: c.path(suffixJournal), Rule: rule, Fix: "correct the configuration", Kind: ErrInvalid}
	}
	if c.MaxSize == 0 {
		c.MaxSize = DefaultMaxSize
	}
	return c, nil
}

func (c Config) path(suffix string) string { return filepath.Join(c.Dir, c.Name+suffix) }

func validLabel(s string) bool { return s != "" && len(s) <= maxLabel && utf8.ValidString(s) }

func validName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && len(s) <= maxName && s[0] != '.' && strings.Trim(s, letters) == ""
}
