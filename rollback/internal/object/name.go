// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"strings"
)

// What a name in a directory cannot be.
var (
	errName    = errors.New("a name is empty, \".\", \"..\", or has a slash or a NUL")
	errGitName = errors.New("a name stands for .git, which is no part of a checkpoint")
)

// CheckName returns an error for a name that cannot be an entry of a tree object.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return errName
	}
	if IsGit(name) {
		return errGitName
	}
	return nil
}

// IsGit reports whether a file system may take the name for ".git": in any case, and with code points in it that a
// case-folding directory ignores (ext4 and f2fs fold with NFDICF, which drops them; so does HFS+).
func IsGit(name string) bool {
	if strings.EqualFold(name, ".git") {
		return true
	}
	if len(name) <= len(".git") || name[0] != '.' && name[0] < 0x80 {
		return false // the common case, without an allocation
	}
	return strings.EqualFold(strings.Map(dropIgnored, name), ".git")
}

// dropIgnored leaves out the code points that have the property Default_Ignorable_Code_Point.
// Source: DerivedCoreProperties.txt of Unicode 15.
func dropIgnored(r rune) rune {
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x3164, r == 0xFEFF, r == 0xFFA0,
		r >= 0x115F && r <= 0x1160, r >= 0x17B4 && r <= 0x17B5, r >= 0x180B && r <= 0x180F,
		r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F,
		r >= 0xFE00 && r <= 0xFE0F, r >= 0xFFF0 && r <= 0xFFF8,
		r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0000 && r <= 0xE0FFF:
		return -1
	}
	return r
}
