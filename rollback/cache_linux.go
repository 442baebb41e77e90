// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/evoseal/containment/rollback/internal/scan"
)

const cacheLimit = 1<<31 + sha256.Size // bytes

func cachePath(treeKey string) string { return path.Join(treesDir, treeKey, "cache") }

// loadCache returns nil where there is none that is whole.
func (s *Store) loadCache(t *target) *scan.Cache {
	data, err := s.readCache(t)
	if err != nil {
		return nil
	}
	return scan.ParseCache(data)
}

// readCache returns what was saved. With a key the file ends in an HMAC: what a cache vouches for becomes part of a
// checkpoint without being read, and with a key nobody else may be able to make a checkpoint.
func (s *Store) readCache(t *target) ([]byte, error) {
	data, err := s.dir.ReadFile(cachePath(t.key), cacheLimit)
	if err != nil || len(s.options.Key) == 0 {
		return data, err
	}
	n := len(data) - sha256.Size
	if n < 0 || !hmac.Equal(data[n:], s.signCache(t, data[:n])) {
		return nil, &fs.PathError{Op: "read", Path: cachePath(t.key), Err: errors.New("not saved with the store's key")}
	}
	return data[:n:n], nil
}

func (s *Store) signCache(t *target, data []byte) []byte {
	h := hmac.New(sha256.New, s.options.Key)
	_, _ = h.Write([]byte("rollback cache\x00" + s.id + t.key)) // a hash returns no error
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// saveCache is not durable: a cache that is lost or torn costs the reading of the tree.
func (s *Store) saveCache(t *target, r *scan.Result) error {
	data, whole := r.CacheFile()
	if data == nil {
		return nil
	}
	if err := s.try("write"); err != nil {
		return err
	}
	if len(s.options.Key) > 0 {
		if !whole {
			old, err := s.readCache(t)
			if err != nil {
				return err
			}
			data = append(data, old[len(data):]...)
		}
		data, whole = append(data, s.signCache(t, data)...), true
	}
	name, temp := cachePath(t.key), path.Join(s.tmp, randomName())
	if whole {
		if err := s.dir.Root.WriteFile(temp, data, 0o600); err != nil {
			return errors.Join(err, s.dir.Root.Remove(temp))
		}
		return s.dir.Root.Rename(temp, name)
	}
	f, err := s.dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}
