// SPDX-License-Identifier: Apache-2.0

package allowlist

// Limits of one set of edits, never of a branch. Zero means none: with Created 0 nothing may be created. So the zero
// value allows nothing.
type Limits struct {
	Files        int   // edits in the set
	Created      int   // of them, files created
	Deleted      int   // of them, files deleted
	ChangedLines int   // lines added plus lines removed, in the whole set; a line ends at LF, CR LF or CR
	FileBytes    int64 // new content of one file, bytes
	TotalBytes   int64 // new content of the whole set, bytes
}

// DefaultLimits returns the limits of a policy that names none: 20 files, 10 of them created and 5 deleted, 400 changed
// lines, 1 MiB for each file and 4 MiB for the set.
func DefaultLimits() Limits {
	return Limits{Files: 20, Created: 10, Deleted: 5, ChangedLines: 400, FileBytes: 1 << 20, TotalBytes: 4 << 20}
}

// minimum is the stricter of two limits, field by field.
func (l Limits) minimum(m Limits) Limits {
	return Limits{
		Files:        min(l.Files, m.Files),
		Created:      min(l.Created, m.Created),
		Deleted:      min(l.Deleted, m.Deleted),
		ChangedLines: min(l.ChangedLines, m.ChangedLines),
		FileBytes:    min(l.FileBytes, m.FileBytes),
		TotalBytes:   min(l.TotalBytes, m.TotalBytes),
	}
}

// forbids names the limit that makes an operation impossible, or is empty. A limit on bytes never does: a file may
// become empty.
func (l Limits) forbids(op Op) string {
	switch {
	case l.Files == 0:
		return "files"
	case op == Create && l.Created == 0:
		return "created"
	case op == Delete && l.Deleted == 0:
		return "deleted"
	case op == Modify && l.ChangedLines == 0:
		return "changed_lines"
	}
	return ""
}
