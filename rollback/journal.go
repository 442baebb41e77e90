// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"

	"github.com/evoseal/containment/rollback/internal/object"
)

// journal is what has to be known to end a restore after a crash. What is still to be done follows from comparing the
// tree with the checkpoint again, so it holds no list to be worked off; it says what the places in staging are for.
type journal struct {
	Store   string // id
	TreeKey string
	Staging string // name of the directory in the root
	To      ID
	Safety  ID
	Foreign ForeignPolicy
	MTime   MTimePolicy
	Changes []Change
	Opened  []opened // of directories that are in no checkpoint
	Slots   []slot   // by number
}

// slot is a place in staging, named by its number. Before the exchange it holds what goes to the path, afterwards what
// stood there.
type slot struct {
	Path    string
	Was     known  // what stood there, if the safety checkpoint has it
	Now     known  // what the checkpoint has for it
	Foreign string // why what was moved here is in no checkpoint
}

// known are bytes that a checkpoint has. The zero value matches nothing.
type known struct {
	Kind   object.Kind
	Data   object.Key
	Target string
}

func knownOf(e *object.Entry) known { return known{Kind: e.Kind, Data: e.Data, Target: e.Target} }

const (
	journalMagic = "rbJ1"
	// maxJournal bounds what is read, and what a restore may write: a million names of 200 bytes fit.
	maxJournal = 512 << 20
)

var (
	errJournal     = errors.New("not a journal, or changed since it was written")
	errJournalBody = errors.New("the journal has fields that none is written with")
)

// encode writes magic, length of the body, body, and a checksum of all before it, which with a key nobody else can
// make.
func (j *journal) encode(key []byte) []byte {
	b := append(make([]byte, 0, 512+160*len(j.Slots)), journalMagic...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, s := range []string{j.Store, j.TreeKey, j.Staging} {
		b = appendText(b, s)
	}
	b = append(append(b, j.To[:]...), j.Safety[:]...)
	b = append(b, byte(j.Foreign), byte(j.MTime))
	b = binary.BigEndian.AppendUint32(b, uint32(len(j.Changes)))
	for _, c := range j.Changes {
		b = append(appendText(b, c.Path), byte(c.Op))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(j.Opened)))
	for _, o := range j.Opened {
		b = binary.BigEndian.AppendUint16(appendText(b, o.Path), uint16(o.Mode))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(j.Slots)))
	for i := range j.Slots {
		s := &j.Slots[i]
		b = appendText(appendKnown(appendKnown(appendText(b, s.Path), s.Was), s.Now), s.Foreign)
	}
	binary.BigEndian.PutUint64(b[len(journalMagic):], uint64(len(b)-len(journalMagic)-8))
	return journalSum(key, b).Sum(b)
}

func journalSum(key, b []byte) hash.Hash {
	h := sha256.New()
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	_, _ = h.Write(b) // a hash returns no error
	return h
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendKnown(b []byte, k known) []byte {
	b = append(b, byte(k.Kind))
	switch k.Kind {
	case object.File:
		b = append(append(b, byte(k.Data.Type)), k.Data.Hash[:]...)
	case object.Link:
		b = appendText(b, k.Target)
	}
	return b
}

// decodeJournal reads what encode wrote and refuses everything else.
func decodeJournal(key, b []byte) (*journal, error) {
	const head = len(journalMagic) + 8
	if len(b) < head+sha256.Size || string(b[:len(journalMagic)]) != journalMagic {
		return nil, errJournal
	}
	body, sum := b[head:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if binary.BigEndian.Uint64(b[len(journalMagic):]) != uint64(len(body)) ||
		!hmac.Equal(sum, journalSum(key, b[:len(b)-sha256.Size]).Sum(nil)) {
		return nil, errJournal
	}
	r := &journalReader{rest: string(body)}
	j := r.journal()
	if r.bad || r.rest != "" {
		return nil, errJournalBody
	}
	return j, nil
}

// journalPath is where the journal of a tree is while one is needed.
func journalPath(treeKey string) string { return treesDir + "/" + treeKey + "/journal" }

// readJournal returns nil if the tree has none.
func (s *Store) readJournal(treeKey string) (*journal, error) {
	name := journalPath(treeKey)
	data, err := s.dir.ReadFile(name, maxJournal)
	if errors.Is(err, errNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rollback: journal: %w", err)
	}
	j, err := decodeJournal(s.options.Key, data)
	if err == nil && (j.Store != s.id || j.TreeKey != treeKey) {
		err = errors.New("it belongs to another store or another tree")
	}
	if err != nil {
		return nil, &CorruptError{Object: name, Why: err.Error()}
	}
	return j, nil
}

// journalIDs returns the checkpoints that unfinished restores need, also of a tree whose marker is lost.
func (s *Store) journalIDs() ([]ID, error) {
	trees, err := fs.ReadDir(s.dir.FS(), treesDir)
	if err != nil {
		return nil, fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	var ids []ID
	for _, tree := range trees {
		key := tree.Name()
		if !isTreeKey(key) {
			continue
		}
		j, err := s.readJournal(key)
		if err != nil {
			return nil, err
		}
		if j != nil {
			ids = append(ids, j.To, j.Safety)
		}
	}
	return ids, nil
}
