// SPDX-License-Identifier: Apache-2.0

package allowlist

const (
	fenceSearch  = "<<<<<<< SEARCH"
	fenceMiddle  = "======="
	fenceReplace = ">>>>>>> REPLACE"
)

// isFence compares whole lines: a fence with a space or a carriage return behind it is content like any other.
func isFence(line []byte) bool {
	s := string(line)
	return s == fenceSearch || s == fenceMiddle || s == fenceReplace
}

// scanSearchReplace reads the whole text. Nothing of it is skipped but empty lines outside of blocks.
func scanSearchReplace(text []byte) ([]*fileBlocks, error) {
	groups := newBlockGroups()
	for c := newCursor(text); ; {
		skipEmpty(c)
		if c.done() {
			break
		}
		path, blocks, err := scanBlocks(c)
		if err != nil {
			return nil, err
		}
		groups.add(path, blocks...)
	}
	if len(groups.files) == 0 {
		return nil, malformed(1, "there is no block")
	}
	return groups.files, nil
}

func skipEmpty(c *lineCursor) {
	for !c.done() && len(c.peek()) == 0 {
		c.next()
	}
}

// scanBlocks reads a name line and the blocks behind it.
func scanBlocks(c *lineCursor) (path string, blocks []textBlock, err error) {
	num := c.num
	line := c.next()
	if isFence(line) {
		return "", nil, malformed(num, "a fence where a name line belongs")
	}
	path = string(line)
	if err := checkBareName(path, num); err != nil {
		return "", nil, err
	}
	if !c.atExactly(fenceSearch) {
		return "", nil, malformed(num, "a line that is neither part of a block nor a name before %s", fenceSearch)
	}
	creates := false
	for c.atExactly(fenceSearch) {
		b, err := scanBlock(c)
		if err != nil {
			return "", nil, err
		}
		blocks = append(blocks, b)
		creates = creates || len(b.old) == 0
		skipEmpty(c)
	}
	if creates && len(blocks) > 1 {
		return "", nil, malformed(num, "a block without old lines creates a file, and must be alone in its section")
	}
	return path, blocks, nil
}

// scanBlock reads one block from its first fence to its last.
func scanBlock(c *lineCursor) (textBlock, error) {
	b := textBlock{at: atLine(c.num), lines: true}
	c.next()
	var err error
	if b.old, err = scanPart(c, fenceMiddle); err != nil {
		return b, err
	}
	b.new, err = scanPart(c, fenceReplace)
	return b, err
}

// scanPart returns the lines up to the fence, and steps over it. Any other fence on the way means that the text is not
// what its author thinks it is.
func scanPart(c *lineCursor, fence string) ([]byte, error) {
	part := c.rest
	for !c.done() {
		num, left := c.num, len(c.rest)
		line := c.next()
		if string(line) == fence {
			return part[: len(part)-left : len(part)-left], nil
		}
		if isFence(line) {
			return nil, malformed(num, "a fence inside a block, or out of order: Replacements takes such text")
		}
	}
	return nil, malformed(c.num, "the text ends before %s", fence)
}
