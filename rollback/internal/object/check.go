// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"strings"
)

// check judges an entry apart from its place among the others.
func check(e *Entry) error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	if err := checkAttributes(e); err != nil {
		return err
	}
	switch e.Kind {
	case File:
		return checkFile(e)
	case Link:
		if e.Target == "" || strings.Contains(e.Target, "\x00") {
			return errors.New("the target is empty or has a NUL")
		}
	}
	if e.Group != "" {
		return errors.New("only a file can have several names")
	}
	return nil
}

// CheckRoot judges the entry of a root, which has no name.
func CheckRoot(e Entry) error {
	if e.Kind != Dir || e.Name != "" || e.Size != 0 || e.Target != "" || e.Group != "" || e.Data.Type != Tree {
		return errors.New("not a root directory")
	}
	if err := checkAttributes(&e); err != nil {
		return err
	}
	return checkXattrs(e.Xattrs)
}

func checkXattrs(list []Xattr) error {
	for i, x := range list {
		if x.Name == "" || i > 0 && x.Name <= list[i-1].Name {
			return errors.New("the attributes are not in order")
		}
	}
	return nil
}

func checkAttributes(e *Entry) error {
	switch {
	case e.Mode > 0o7777:
		return fmt.Errorf("mode %#o has bits that are no permissions", e.Mode)
	case e.Nsec > 999_999_999:
		return fmt.Errorf("%d nanoseconds are more than a second", e.Nsec)
	}
	return nil
}

func checkFile(e *Entry) error {
	switch {
	case e.Size < 0:
		return errors.New("the size is negative")
	case e.Size <= MaxBlob && e.Data.Type != Blob, e.Size > MaxBlob && e.Data.Type != Chunks:
		return fmt.Errorf("%d bytes are not kept as an object of type %d", e.Size, e.Data.Type)
	case e.Group != "":
		return checkPath(e.Group)
	}
	return nil
}

// checkPath judges a path from the root.
func checkPath(p string) error {
	for name := range strings.SplitSeq(p, "/") {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("path %q: %w", p, err)
		}
	}
	return nil
}
