// SPDX-License-Identifier: Apache-2.0

package runaway

import "github.com/evoseal/containment/internal/journal"

// FileStoreOn is a FileStore on a file system of the test's own.
func FileStoreOn(dir string, open func(dir string) (journal.FS, error)) Store {
	return &fileStore{dir: dir, openFS: open}
}

// SnapshotEvery lets a governor take a snapshot after so many records.
func SnapshotEvery(g *Governor, records int) {
	g.run.lock()
	defer g.run.unlock()
	g.run.snapEvery = records
}
