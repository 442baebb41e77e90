// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"log/slog"

	"github.com/evoseal/containment/rollback/internal/object"
)

// Sink is where objects go; a pack writer is one. Both methods are called by several goroutines at once, and neither
// may keep raw. A sink that has the method Generation as well is not asked for each object that a cache names.
type Sink interface {
	// Has reports whether the object can be read back now.
	Has(object.Key) bool
	// Add hashes raw and stores it unless it is there already.
	Add(t object.Type, raw []byte) (object.Key, error)
}

// Options of [Scan]. The zero value reads every byte, hashes, stores nothing and refuses special files.
type Options struct {
	Sink    Sink     // nil: hash only
	Cache   *Cache   // what an earlier scan knew; nil: read everything
	Exclude *Matcher // nil: nothing is excluded
	Limits  Limits

	Owner       bool // record uid and gid
	Xattrs      bool // record extended attributes: "user." and POSIX ACLs
	RefuseSetID bool // regular files with set-id bits are a failure
	SkipSpecial bool // FIFOs, sockets and devices are foreign; otherwise a failure

	// Tolerate turns entries that cannot be captured (unreadable, unstable, too large, special) into foreign ones, each
	// with its reason, so that a restore can move them out of the way. Without it any of them fails the scan.
	Tolerate bool

	Workers int // 0: the smaller of 8 and GOMAXPROCS
	Scrub   int // re-read one in Scrub of the files that the cache vouches for, in turn; 0: none

	Logger *slog.Logger // nil discards

	clock   clock             // for tests; nil: the kernel's
	prev    *Result           // of Rescan
	touched func(string) bool // of Rescan
}

// Limits of a scan; zero means nothing is allowed, so that a forgotten limit is noticed.
type Limits struct {
	Files    int64 // entries, the root not counted
	Bytes    int64 // sum of the sizes of regular files
	FileSize int64 // bytes of one file
	Depth    int   // directories below the root, one inside the other
}

// Stat is what tells whether an entry is still the one that was captured, beside the fields of the entry itself.
type Stat struct {
	Dev       uint64 // not the tree's for a file of an overlayfs whose layers are on several file systems; 0: not known yet
	Ino       uint64
	CtimeSec  int64
	CtimeNsec uint32
	Nlink     uint32
	Blocks    int64  // of 512 bytes
	UID, GID  uint32 // also where the entry does not record them
}

// Node is an entry with what is below it.
type Node struct {
	object.Entry
	Stat     Stat
	Children []*Node // of a directory, in byte order of the names
	Parent   *Node   // nil: the root

	cached   uint32 // offset of its record in the cache; 0: none
	clean    bool   // Dir: what is in it is what the cache says, subdirectories apart
	changed  bool   // something of the entry itself is not what the cache says
	racy     bool   // taken over from an earlier result that was too young to vouch for it
	gone     bool   // left out after it was listed; only with Tolerate
	kept     bool   // Dir: taken over from an earlier result with everything below
	resummed bool   // Dir: its hashes are new
	prev     *Node  // what an earlier result has at this place
}

// StagingPrefix is what the names begin with that restores put into the top of a tree. They are never content.
const StagingPrefix = ".rollback-"

// Why says why an entry is no part of a scan.
type Why uint8

// The reasons.
const (
	Git        Why = iota + 1 // a name that is .git in any case
	Excluded                  // by pattern
	Mount                     // another file system, or something mounted there
	Special                   // FIFO, socket or device
	Unreadable                // only with Tolerate
	Unstable                  // only with Tolerate
	TooLarge                  // only with Tolerate
)

var whyText = [...]string{
	Git: "git", Excluded: "excluded", Mount: "another file system", Special: "special file",
	Unreadable: "unreadable", Unstable: "kept changing", TooLarge: "larger than the limit",
}

// String names the reason.
func (w Why) String() string {
	if int(w) < len(whyText) && whyText[w] != "" {
		return whyText[w]
	}
	return "unknown"
}

// Foreign is an entry that was met and left alone.
type Foreign struct {
	Path   string // relative to the root
	Why    Why
	Detail string // the kind of a special file, the error of an unreadable one
}

// Result of a scan.
type Result struct {
	Root    *Node
	Dev     uint64    // device of all nodes
	Foreign []Foreign // sorted by path
	Staging []string  // names at the top that begin with StagingPrefix; nothing else of them is looked at

	Files, Dirs, Links int // regular files (each name counts), directories below the root, symbolic links
	Bytes              int64
	Read               int      // files that were read
	ReadBytes          int64    // and their bytes
	Scrubbed           int      // of those, files that the cache vouched for
	Drifted            []string // scrubbed files whose bytes were not what the cache said

	cache *cacheState
}

// Tree is the key of the root's directory object; Content sums up names, kinds, execute bits, bytes and targets.
func (r *Result) Tree() object.Key { return r.Root.Data }

// Content is described at [Result.Tree].
func (r *Result) Content() object.Hash { return r.Root.Content }

// Path returns where the node is, relative to the root; the root itself is ".".
func (n *Node) Path() string {
	if n.Parent == nil {
		return "."
	}
	size := -1
	for p := n; p.Parent != nil; p = p.Parent {
		size += len(p.Name) + 1
	}
	buf := make([]byte, size)
	for p := n; p.Parent != nil; p = p.Parent {
		size -= len(p.Name)
		copy(buf[size:], p.Name)
		if size > 0 {
			size--
			buf[size] = '/'
		}
	}
	return string(buf)
}

// Child returns the entry of that name, or nil.
func (n *Node) Child(name string) *Node {
	if n == nil {
		return nil
	}
	lo, hi := 0, len(n.Children)
	for lo < hi {
		mid := (lo + hi) / 2
		if n.Children[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(n.Children) && n.Children[lo].Name == name {
		return n.Children[lo]
	}
	return nil
}
