// SPDX-License-Identifier: Apache-2.0

package allowlist

// applyBlocks makes one edit of the blocks of each file.
func applyBlocks(files []*fileBlocks, src Source) ([]Edit, error) {
	out, budget := newOutcome(src), newSearchBudget()
	for _, f := range files {
		op := Modify
		if len(f.blocks[0].old) == 0 {
			op = Create
		}
		e, err := f.edit(op, out, budget)
		if err := out.add(op, f.path, e, err); err != nil {
			return nil, err
		}
	}
	return out.result()
}

func (f *fileBlocks) edit(op Op, out *parseOutcome, budget *searchBudget) (Edit, error) {
	first := f.blocks[0]
	if code, why := checkPath(f.path); code != "" {
		return Edit{}, &parseRefusal{code, first.at, why}
	}
	if op == Create {
		return f.create(out)
	}
	base, err := out.base(f.path, first.at)
	if err != nil {
		return Edit{}, err
	}
	content := base
	for _, b := range f.blocks {
		if err := budget.spend(len(content), b.at); err != nil {
			return Edit{}, err
		}
		if content, err = b.replaceIn(content); err != nil {
			return Edit{}, err
		}
	}
	return Edit{Op: Modify, Path: f.path, Content: content, Base: Sum(base)}, out.hold(len(content), first.at)
}

// create makes a file of a block without old text. Nothing else may touch it: the next block would see a file that the
// tree does not hold.
func (f *fileBlocks) create(out *parseOutcome) (Edit, error) {
	b := f.blocks[0]
	if len(f.blocks) > 1 {
		return Edit{}, &parseRefusal{ErrConflict, f.blocks[1].at, "a second block for a file that the set creates"}
	}
	if err := out.absent(f.path, b.at); err != nil {
		return Edit{}, err
	}
	return Edit{Op: Create, Path: f.path, Content: append([]byte{}, b.new...)}, out.hold(len(b.new), b.at)
}

// replaceIn returns a new slice; content stays as it is.
func (b textBlock) replaceIn(content []byte) ([]byte, error) {
	if len(b.old) == 0 {
		return nil, &parseRefusal{ErrConflict, b.at, "the file to create exists"}
	}
	what := "the old text"
	if len(content) > 0 && content[len(content)-1] != '\n' {
		// Whole lines cannot name the last line of such a file, and a generator cannot see why.
		what = "the old text (the file does not end with a newline)"
	}
	i, err := findOnce(content, b.old, what, b.at)
	if err != nil {
		return nil, err
	}
	if b.lines && i > 0 && content[i-1] != '\n' {
		return nil, &parseRefusal{ErrConflict, b.at, "the old text occurs 0 times as whole lines; it starts inside a line"}
	}
	out := make([]byte, 0, len(content)-len(b.old)+len(b.new)) // never nil, which would mean a deletion
	return append(append(append(out, content[:i]...), b.new...), content[i+len(b.old):]...), nil
}
