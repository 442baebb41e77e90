// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// A manifest is a file: magic 8, length of the body 4, body, and with Options.Key the HMAC-SHA-256 of all before it. The
// name of the file is the SHA-256 of all its bytes.
const (
	manifestMagic   = "rbCKPT01"
	manifestVersion = 1
	manifestHead    = len(manifestMagic) + 4
	manifestLimit   = 1 << 20 // bytes of the body
)

func manifestPath(id ID) string { return path.Join(manifestsDir, id.String()) }

// encodeManifest returns the bytes of the file and their hash.
func encodeManifest(m *manifest, key []byte) ([]byte, ID, error) {
	body, err := json.Marshal(m.encode())
	if err != nil {
		return nil, ID{}, fmt.Errorf("rollback: manifest: %w", err)
	}
	if len(body) > manifestLimit {
		return nil, ID{}, fmt.Errorf("rollback: a manifest of %d bytes, more than %d; exclude by fewer or shorter patterns: %w",
			len(body), manifestLimit, ErrTooLarge)
	}
	b := append(make([]byte, 0, manifestHead+len(body)+sha256.Size), manifestMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	if len(key) > 0 {
		b = append(b, sign(key, b)...)
	}
	return b, sha256.Sum256(b), nil
}

// decodeManifest reads what encodeManifest wrote and refuses everything else. The hash of the bytes was compared before.
func decodeManifest(data, key []byte) (m manifest, err error) {
	if len(key) > 0 {
		n := len(data) - sha256.Size
		if n < 0 || !hmac.Equal(data[n:], sign(key, data[:n])) {
			return m, errors.New("it was not sealed with the store's key")
		}
		data = data[:n]
	}
	if len(data) < manifestHead || !bytes.HasPrefix(data, []byte(manifestMagic)) {
		return m, errors.New("not a manifest")
	}
	body := data[manifestHead:]
	if int64(binary.BigEndian.Uint32(data[len(manifestMagic):])) != int64(len(body)) || len(body) > manifestLimit {
		return m, errors.New("it has another length than it says")
	}
	if newer(body, manifestVersion) {
		return m, fmt.Errorf("of a later version than %d: %w", manifestVersion, ErrFormat)
	}
	j, err := decodeStrict[manifestJSON](body)
	if err != nil {
		return m, err
	}
	if j.Version != manifestVersion {
		return m, fmt.Errorf("version %d was never written", j.Version)
	}
	if j.Values == nil || j.Exclude == nil || j.Root.Xattrs == nil {
		return m, errors.New("a list is missing; an empty one is written")
	}
	m = j.decode()
	return m, m.check()
}

// manifest reads and checks one: ErrNotFound, *CorruptError, ErrFormat.
func (s *Store) manifest(id ID) (manifest, error) {
	name := manifestPath(id)
	data, err := s.dir.ReadFile(name, int64(manifestHead+manifestLimit+sha256.Size))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return manifest{}, fmt.Errorf("rollback: %s: %w", id, ErrNotFound)
	case errors.Is(err, fs.ErrInvalid):
		return manifest{}, &CorruptError{ID: id, Object: name, Why: err.Error()}
	case err != nil:
		return manifest{}, fmt.Errorf("rollback: checkpoint %s: %w", id, err)
	case sha256.Sum256(data) != id:
		return manifest{}, &CorruptError{ID: id, Object: name, Why: "its bytes have another hash"}
	}
	m, err := decodeManifest(data, s.options.Key)
	switch {
	case errors.Is(err, ErrFormat):
		return manifest{}, fmt.Errorf("rollback: checkpoint %s: %w", id, err)
	case err != nil:
		return manifest{}, &CorruptError{ID: id, Object: name, Why: err.Error()}
	case m.Store != s.id:
		return manifest{}, &CorruptError{ID: id, Object: name, Why: "it is of another store"}
	}
	return m, nil
}
