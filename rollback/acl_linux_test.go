// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInheritsNothing: a directory with a default access list gives one to every file that is made in it. A file that a
// restore makes there gets none, since the checkpoint has none: it would let somebody in.
func TestInheritsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	var list []byte
	list = binary.LittleEndian.AppendUint32(list, 2) // the version
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 7, ^uint32(0)}, {0x02, 7, 12345}, {0x04, 0, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	const file = "src/b"
	check(t, unix.Setxattr(b.path("src"), "system.posix_acl_default", list, 0))
	b.write("src/made-now", "x")
	if n, err := unix.Getxattr(b.path("src/made-now"), "system.posix_acl_access", nil); n <= 0 || err != nil {
		t.Fatalf("this file system hands no list on, so that nothing is tested: %d, %v", n, err)
	}
	b.write(file, "damaged")
	b.restore()
	same(t, "the tree", good, picture(t, b.tree))
	if n, err := unix.Getxattr(b.path(file), "system.posix_acl_access", nil); err != unix.ENODATA {
		t.Errorf("the restored file has an access list: %d bytes, %v", n, err)
	}
}
