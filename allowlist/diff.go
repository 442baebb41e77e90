// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
	"strings"
)

const contextLines = 3

// writeDiff writes one change as a section of a git patch, in the form that ParsePatch reads.
func writeDiff(b *bytes.Buffer, c change) {
	hunks := hunksOf(diffLines(c.old, c.Content))
	if c.Op == Modify && len(hunks) == 0 {
		return // the same bytes again: git has no section for that
	}
	fmt.Fprintf(b, "diff --git a/%s b/%s\n", c.Path, c.Path)
	from, to := "a/"+c.Path, "b/"+c.Path
	switch c.Op {
	case Create:
		b.WriteString("new file mode 100644\n")
		from = "/dev/null"
	case Delete:
		fmt.Fprintf(b, "deleted file mode %s\n", gitMode(c.meta.perm))
		to = "/dev/null"
	}
	if len(hunks) == 0 {
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", gitName(from), gitName(to))
	for _, h := range hunks {
		h.write(b)
	}
}

func gitMode(perm uint32) string {
	if perm&0o111 != 0 {
		return "100755"
	}
	return "100644"
}

// gitName puts a TAB after names with a space, as git does, so that other tools see where the name ends.
func gitName(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// hunk is a group of changes with the lines around them.
type hunk struct {
	oldStart, newStart int // first line, from 0
	ops                []lineOp
}

// hunksOf groups changes that are close, and cuts the equal lines between the groups.
func hunksOf(ops []lineOp) []hunk {
	var hunks []hunk
	var cur *hunk
	oldAt, newAt := 0, 0
	for i, op := range ops {
		switch n := len(op.equal); {
		case len(op.removed)+len(op.added) > 0:
			cur.ops = append(cur.ops, op)
		case cur != nil && i < len(ops)-1 && n <= 2*contextLines:
			cur.ops = append(cur.ops, op)
		default:
			if cur != nil {
				cur.ops = append(cur.ops, lineOp{equal: op.equal[:min(n, contextLines)]})
			}
			cur = nil
			if i < len(ops)-1 {
				skip := max(0, n-contextLines)
				hunks = append(hunks, hunk{oldStart: oldAt + skip, newStart: newAt + skip})
				cur = &hunks[len(hunks)-1]
				cur.ops = append(cur.ops, lineOp{equal: op.equal[skip:]})
			}
		}
		oldAt += len(op.equal) + len(op.removed)
		newAt += len(op.equal) + len(op.added)
	}
	return hunks
}

func (h hunk) write(b *bytes.Buffer) {
	oldLines, newLines := 0, 0
	for _, op := range h.ops {
		oldLines += len(op.equal) + len(op.removed)
		newLines += len(op.equal) + len(op.added)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", hunkRange(h.oldStart, oldLines), hunkRange(h.newStart, newLines))
	for _, op := range h.ops {
		writeLines(b, ' ', op.equal)
		writeLines(b, '-', op.removed)
		writeLines(b, '+', op.added)
	}
}

// hunkRange counts from 1, but an empty range names the line before it.
func hunkRange(start, lines int) string {
	if lines > 0 {
		start++
	}
	if lines == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, lines)
}

func writeLines(b *bytes.Buffer, mark byte, lines [][]byte) {
	for _, line := range lines {
		b.WriteByte(mark)
		b.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
