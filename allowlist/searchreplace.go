// SPDX-License-Identifier: Apache-2.0

package allowlist

import "fmt"

const searchHint = "write a line with the bare path, then blocks between the fences <<<<<<< SEARCH, ======= and" +
	" >>>>>>> REPLACE, each alone on its line, and nothing else"

// ParseSearchReplace turns search/replace text into edits of the files that src holds:
//
//	path/to/file
//	<<<<<<< SEARCH
//	old lines
//	=======
//	new lines
//	>>>>>>> REPLACE
//
// A name line is followed by one or more blocks; empty lines may separate blocks and files. The old lines, with their
// newlines, must occur exactly once in the file, byte for byte and as whole lines; nothing is trimmed or normalised. A
// block without old lines creates a file, alone in its section. Blocks of one file apply in order, each to the result of
// the one before, and become one Edit. Text that holds a fence in a block needs Replacements.
//
// It returns edits, or a *DeniedError: ErrPatchMalformed for the whole text; a code of the path grammar, or ErrConflict,
// for a file; ErrTooLarge for more than 4 MiB, or for very many blocks on very large files. An error of src that is
// neither fs.ErrNotExist nor a Code is returned wrapped.
func ParseSearchReplace(text []byte, src Source) ([]Edit, error) {
	if err := tooLong(len(text)); err != nil {
		return nil, refuseAll(err, searchHint)
	}
	files, err := scanSearchReplace(text)
	if err != nil {
		return nil, refuseAll(err, searchHint)
	}
	return applyBlocks(files, src)
}

// Replacements is ParseSearchReplace for a caller that has the blocks in typed form. Old and New are any bytes, and need
// not be whole lines. An empty Old creates a file. Decisions name a replacement by its number in rs, from 1. An empty rs
// is ErrPatchMalformed.
func Replacements(rs []Replacement, src Source) ([]Edit, error) {
	const hint = "send at least one replacement"
	if len(rs) == 0 {
		return nil, refuseAll(&parseRefusal{code: ErrPatchMalformed, why: "there is no replacement"}, hint)
	}
	size := 0
	g := newBlockGroups()
	for i, r := range rs {
		size += len(r.Path) + len(r.Old) + len(r.New)
		g.add(r.Path, textBlock{at: fmt.Sprintf("replacement %d", i+1), old: r.Old, new: r.New})
	}
	if err := tooLong(size); err != nil {
		return nil, refuseAll(err, hint)
	}
	return applyBlocks(g.files, src)
}

// textBlock is one replacement.
type textBlock struct {
	at       string
	old, new []byte
	lines    bool // old must lie on whole lines
}

// fileBlocks holds the blocks of one file in order.
type fileBlocks struct {
	path   string
	blocks []textBlock
}

// blockGroups collects blocks by file, in the order in which the files are first named.
type blockGroups struct {
	files []*fileBlocks
	index map[string]*fileBlocks
}

func newBlockGroups() *blockGroups { return &blockGroups{index: map[string]*fileBlocks{}} }

func (g *blockGroups) add(path string, b ...textBlock) {
	f := g.index[path]
	if f == nil {
		f = &fileBlocks{path: path}
		g.index[path] = f
		g.files = append(g.files, f)
	}
	f.blocks = append(f.blocks, b...)
}
