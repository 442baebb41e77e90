// SPDX-License-Identifier: Apache-2.0

package artifact

import "strings"

// isGit reports whether git, on some file system, takes a name for ".git". Case is ignored on macOS and Windows; NTFS
// drops spaces and dots at the end and everything from a colon, and knows the directory by its short name; HFS+ passes over
// code points that show nothing. The artifact may well be carried to such a system.
func isGit(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(strings.Map(visible, name), " .")
	if strings.EqualFold(name, ".git") {
		return true
	}
	short, number, ok := strings.Cut(strings.ToLower(name), "~")
	return ok && short == "git" && number != "" && strings.Trim(number, "0123456789") == ""
}

// visible drops what HFS+ ignores in names.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}
