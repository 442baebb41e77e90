// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestForgedCache: with a key nobody else can make a checkpoint, not even by having the store believe that a file holds
// other bytes than it does.
func TestForgedCache(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Sync: SyncProcess, Key: []byte("secret"), Scrub: 1 << 30})
	b.write("true", "the true bytes")
	b.write("lie!", "a false byte..")
	time.Sleep(30 * time.Millisecond) // old enough for the cache to vouch for them
	b.again()
	name := filepath.Join(b.store, cachePath(b.key()))
	data, err := os.ReadFile(name)
	check(t, err)
	honest, lie := sha256.Sum256([]byte("the true bytes")), sha256.Sum256([]byte("a false byte.."))
	if bytes.Count(data, honest[:]) != 1 || bytes.Count(data, lie[:]) != 1 {
		t.Fatal("the cache does not name both")
	}
	data = bytes.Replace(data, honest[:], lie[:], 1)
	const header, bodyLen, bodySum, headerSum = 120, 72, 80, 116 // see internal/scan/cache.go
	body := data[header:][:binary.LittleEndian.Uint64(data[bodyLen:])]
	binary.LittleEndian.PutUint32(data[bodySum:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(data[headerSum:], crc32.Checksum(data[:headerSum], castagnoli))
	check(t, os.WriteFile(name, data, 0o600))
	b.write("other", "so that the directory is summed up again")
	b.again()
	if want, err := b.s.Digest(t.Context(), b.tree); err != nil || b.old.Digest != want {
		t.Errorf("the checkpoint is of a tree that never was, %v", err)
	}
}

// TestCacheWithKey: a keyed store has a cache that works, also when only its header is renewed.
func TestCacheWithKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Sync: SyncProcess, Key: []byte("secret"), Scrub: 1 << 30})
	time.Sleep(30 * time.Millisecond)
	b.again()
	for range 3 {
		leave, err := b.s.enter(t.Context(), false)
		check(t, err)
		x, err := b.s.openTarget(t.Context(), b.tree, forCheckpoint)
		check(t, err)
		c, err := b.s.capture(t.Context(), x, captureOptions{Exclude: b.s.options.Exclude})
		check(t, err)
		if c.result.Read > 0 {
			t.Errorf("%d files were read again", c.result.Read)
		}
		_, err = c.seal(t.Context(), Meta{}, User)
		check(t, err)
		x.close()
		leave()
	}
}
