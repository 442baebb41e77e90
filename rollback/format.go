// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	formatVersion = 1
	formatLimit   = 4096 // bytes
)

// format is format.json: what has to be known before anything else of a store is read.
type format struct {
	Version int    `json:"version"`
	Hash    string `json:"hash"`
	Store   string `json:"store"` // random
	// Key is the HMAC of the store's name, so that a wrong key is noticed at once. Empty: the store has no key.
	Key string `json:"key,omitempty"`
}

// randomName returns 32 random hexadecimal digits.
func randomName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func isHex(s string, digits int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == digits && strings.ToLower(s) == s
}

// sign returns the HMAC-SHA-256 of data.
func sign(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(data) // a hash returns no error
	return h.Sum(nil)
}

func keyCheck(key []byte, store string) string {
	if len(key) == 0 {
		return ""
	}
	return hex.EncodeToString(sign(key, []byte("rollback store "+store)))
}

// decodeStrict reads one JSON value in the one form that json.Marshal gives it: unknown fields, duplicate keys, another
// case, white space and trailing bytes all make a difference there.
func decodeStrict[T any](data []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return v, err
	}
	if !bytes.Equal(again, data) {
		return v, errors.New("not in the form in which it is written")
	}
	return v, nil
}

// newer reports whether a JSON object is of a later version than this program knows.
func newer(data []byte, known int) bool {
	var v struct{ Version int }
	return json.Unmarshal(data, &v) == nil && v.Version > known
}

// readFormat reads or, in a new store, makes format.json.
func (s *Store) readFormat() error {
	data, err := s.dir.ReadFile(formatFile, formatLimit)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.createFormat(); err != nil {
			return err
		}
		data, err = s.dir.ReadFile(formatFile, formatLimit)
	}
	if errors.Is(err, fs.ErrInvalid) {
		return &CorruptError{Object: formatFile, Why: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	s.id, err = s.parseFormat(data)
	return err
}

// parseFormat returns the store's name.
func (s *Store) parseFormat(data []byte) (id string, err error) {
	if newer(data, formatVersion) {
		return "", fmt.Errorf("rollback: %s is of a later version than %d: %w", s.join(formatFile), formatVersion, ErrFormat)
	}
	f, err := decodeStrict[format](data)
	if err != nil || f.Version != formatVersion || f.Hash != "sha256" || !isHex(f.Store, 32) {
		return "", &CorruptError{Object: formatFile, Why: fmt.Sprintf("not the description of a store (%v)", err)}
	}
	if !hmac.Equal([]byte(f.Key), []byte(keyCheck(s.options.Key, f.Store))) {
		return "", fmt.Errorf("rollback: %s: Options.Key is not the key that the store was made with: %w", s.path, ErrFormat)
	}
	return f.Store, nil
}

// createFormat makes a directory a store, in one step: of two processes that do it at the same time one wins.
func (s *Store) createFormat() error {
	if err := s.onlyOurs(); err != nil {
		return err
	}
	f := format{Version: formatVersion, Hash: "sha256", Store: randomName()}
	f.Key = keyCheck(s.options.Key, f.Store)
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	temp, named := path.Join(s.tmp, randomName()), path.Join(s.tmp, randomName())
	if err := s.dir.WriteFile(temp, named, data); err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
	}
	defer func() { _ = s.dir.Remove(named) }() // a second name of format.json; what stays is swept
	if err := s.dir.Link(named, formatFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
	}
	return s.dir.SyncDir(".")
}

// onlyOurs refuses to make a store of a directory in which there is something: it is not ours, or it is a store that
// lost its description.
func (s *Store) onlyOurs() error {
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	for _, e := range entries {
		if name := e.Name(); name != tmpDir && name != formatFile {
			return &CorruptError{Object: formatFile, Why: fmt.Sprintf(
				"it is missing, but %s is not empty, it has %q; name an empty or a new directory for a new store", s.path, name)}
		}
	}
	return nil
}
