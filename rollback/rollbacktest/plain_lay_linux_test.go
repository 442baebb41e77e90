// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// group names the partners of each hard link by their first name.
func (sc *scanner) group() {
	for rel, key := range sc.links {
		if first, known := sc.groups[key]; !known || rel < first {
			sc.groups[key] = rel
		}
	}
	members := map[[2]uint64]int{}
	for _, key := range sc.links {
		members[key]++
	}
	for dir, list := range sc.lists {
		slices.SortFunc(list, func(a, b entry) int { return bytes.Compare(a.Name, b.Name) })
		for i := range list {
			if key, ok := sc.links[path.Join(dir, string(list[i].Name))]; ok && members[key] > 1 {
				list[i].Group = []byte(sc.groups[key])
			}
		}
	}
}

// lay stores the list of a directory, and of all below it, and adds both to the digests.
func (sc *scanner) lay(rel string, tree, content io.Writer) (string, error) {
	list := sc.lists[rel]
	for i := range list {
		e := &list[i]
		x := e.Mode & 0o100
		if e.kind() == unix.S_IFDIR {
			x = 0
		}
		fmt.Fprintf(content, "%q %q %o %o %q %q\n", rel, e.Name, e.kind(), x, e.Data, e.Target)
		if e.kind() == unix.S_IFDIR {
			var err error
			if e.Data, err = sc.lay(path.Join(rel, string(e.Name)), tree, content); err != nil {
				return "", err
			}
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(tree, "%q %s\n", rel, text)
	return sc.keep(text)
}

// load reads the lists of a checkpoint.
func (p *plain) load(m manifest) (map[string][]entry, error) {
	lists := map[string][]entry{}
	var walk func(rel, name string) error
	walk = func(rel, name string) error {
		text, err := p.get("blobs", name)
		if err != nil {
			return err
		}
		var list []entry
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		lists[rel] = list
		for _, e := range list {
			if e.kind() == unix.S_IFDIR {
				if err := walk(path.Join(rel, string(e.Name)), e.Data); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return lists, walk(".", m.Root.Data)
}

// flat turns lists into entries by path.
func flat(lists map[string][]entry) map[string]entry {
	all := map[string]entry{}
	for dir, list := range lists {
		for _, e := range list {
			all[path.Join(dir, string(e.Name))] = e
		}
	}
	return all
}

// below reports whether the path is the directory or in it.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }
