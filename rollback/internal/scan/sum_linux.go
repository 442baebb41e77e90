// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/evoseal/containment/rollback/internal/object"
)

// group finds the files with several names in the tree. All names of one file must have been seen alike.
func (s *scanner) group() {
	type member struct {
		path string
		node *Node
	}
	type inode struct{ dev, ino uint64 }
	byInode := make(map[inode][]member, len(s.linked))
	for _, n := range s.linked {
		if n.listed() {
			i := inode{n.Stat.Dev, n.Stat.Ino}
			byInode[i] = append(byInode[i], member{n.Path(), n})
		}
	}
	for _, members := range byInode {
		first, group := members[0].node, ""
		if len(members) > 1 {
			slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.path, b.path) })
			first = members[0].node
			group = members[0].path
		}
		for _, m := range members {
			n := m.node
			if n.Data != first.Data || n.Mode != first.Mode || n.Sec != first.Sec || n.Nsec != first.Nsec {
				s.moved(n)
			}
			was := n.Group
			if rec := s.cache.record(n.cached); rec != nil {
				was = string(rec.group())
			}
			n.Group, n.changed = group, n.changed || was != group
		}
	}
}

// listed reports whether the node is still part of the tree: nothing above it was left out.
func (n *Node) listed() bool {
	for ; n != nil; n = n.Parent {
		if n.gone {
			return false
		}
	}
	return true
}

// sumUp makes the objects of the directories, the deepest first, and counts.
func (s *scanner) sumUp(r *Result) error {
	levels := [][]*Node{{r.Root}}
	for depth := 0; depth < len(levels); depth++ {
		var below []*Node
		for _, dir := range levels[depth] {
			listed := len(dir.Children)
			dir.Children = slices.DeleteFunc(dir.Children, func(n *Node) bool { return n.gone })
			if len(dir.Children) < listed {
				dir.clean, dir.kept = false, false
			}
			for _, n := range dir.Children {
				switch n.Kind {
				case object.Dir:
					r.Dirs++
					below = append(below, n)
				case object.Link:
					r.Links++
				case object.File:
					r.Files++
					r.Bytes += n.Size
				}
			}
		}
		if below != nil {
			levels = append(levels, below)
		}
	}
	if r.Root.changed {
		s.rewritten.Store(true)
	}
	for depth := len(levels) - 1; depth >= 0; depth-- {
		if err := s.sumLevel(levels[depth]); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) sumLevel(dirs []*Node) error {
	const batch = 16
	var next atomic.Int64
	var once sync.Once
	var failure error
	work := func() {
		var entries []object.Entry
		for {
			end := int(next.Add(batch))
			for _, dir := range dirs[min(end-batch, len(dirs)):min(end, len(dirs))] {
				var err error
				if entries, err = s.sumDir(dir, entries[:0]); err != nil {
					once.Do(func() { failure = err })
					return
				}
			}
			if end >= len(dirs) {
				clear(entries[:cap(entries)])
				return
			}
		}
	}
	if len(dirs) <= batch {
		work()
		return failure
	}
	var workers sync.WaitGroup
	for range s.o.Workers {
		workers.Go(work)
	}
	workers.Wait()
	return failure
}

// sumDir makes the object of one directory, unless the cache has the hashes of the same one.
func (s *scanner) sumDir(dir *Node, entries []object.Entry) ([]object.Entry, error) {
	if s.unchanged(dir) || dir.keptWhole() {
		return entries, nil
	}
	s.rewritten.Store(true)
	dir.resummed = true
	for _, n := range dir.Children {
		entries = append(entries, n.Entry)
	}
	dir.Content = object.ContentDigest(entries)
	key, err := s.put(object.Tree, object.EncodeTree(entries))
	dir.Data = key
	return entries, err
}

// unchanged takes the hashes of a directory from the cache if everything in it is as it was.
func (s *scanner) unchanged(dir *Node) bool {
	rec := s.cache.record(dir.cached)
	if !dir.clean || rec == nil {
		return false
	}
	for _, n := range dir.Children {
		if n.changed {
			return false
		}
		if n.Kind == object.Dir {
			child := s.cache.record(n.cached)
			if child == nil || s.cache.open(child).c == nil {
				return false
			}
			if tree, content := s.cache.sums(child); tree != n.Data || content != n.Content {
				return false
			}
		}
	}
	tree, content := s.cache.sums(rec)
	if !s.assured && !s.o.Sink.Has(tree) {
		return false
	}
	dir.Data, dir.Content = tree, content
	return true
}

// keptWhole reports whether a directory that was taken over still has the hashes that came with it.
func (dir *Node) keptWhole() bool {
	return dir.kept && !slices.ContainsFunc(dir.Children, func(n *Node) bool { return n.changed || n.resummed })
}
