// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"time"
)

// labels.log says what happens to checkpoints after they are sealed. A record is one line:
//
//	length of the JSON 8, CRC of the JSON 8, CRC of the two before 8, each with a space after it; JSON; newline
//
// in lower-case hexadecimal digits. Every CRC-32C begins with that of the JSON before, the first with that of the store's
// name, so that a record cannot be removed, repeated or taken from another store. A record that the file ends within, or
// zeros to the end, is what a crash left of a call that did not return: it does not count. Everything else is an error.
const (
	labelHead    = 3 * 9
	labelLimit   = 64 << 10 // bytes of one record
	labelsLimit  = 64 << 20 // bytes of the file
	labelPin     = "pin"
	labelUnpin   = "unpin"
	labelRestore = "restore"
)

// label is a record of labels.log.
type label struct {
	Op     string    `json:"op"`
	ID     ID        `json:"id"` // pinned, unpinned, or restored to
	Why    string    `json:"why,omitempty"`
	Tree   string    `json:"tree,omitempty"` // key; of a restore
	Safety ID        `json:"safety"`         // of a restore
	Time   time.Time `json:"time"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeLabel returns a record, and the CRC that the next one begins with.
func encodeLabel(chain uint32, l label) ([]byte, uint32, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, 0, err
	}
	if len(body) > labelLimit {
		return nil, 0, fmt.Errorf("a label of %d bytes, more than %d: %w", len(body), labelLimit, ErrTooLarge)
	}
	sum := crc32.Update(chain, castagnoli, body)
	head := fmt.Appendf(nil, "%08x %08x ", len(body), sum)
	head = fmt.Appendf(head, "%08x ", crc32.Update(chain, castagnoli, head))
	return append(append(head, body...), '\n'), sum, nil
}

// decodeLabels returns the records, how many bytes of data they are, and the CRC for the next one.
func decodeLabels(chain uint32, data []byte) (labels []label, whole int, next uint32, err error) {
	for at := 0; ; {
		rest := data[at:]
		if torn(rest) {
			return labels, at, chain, nil
		}
		n, okLen := labelNumber(rest)
		sum, okSum := labelNumber(rest[9:])
		headSum, okHead := labelNumber(rest[2*9:])
		if !okLen || !okSum || !okHead || crc32.Update(chain, castagnoli, rest[:2*9]) != headSum || n > labelLimit {
			return nil, 0, 0, fmt.Errorf("the record at %d is damaged", at)
		}
		size := labelHead + int(n) + 1
		if len(rest) < size {
			return labels, at, chain, nil
		}
		l, err := decodeStrict[label](rest[labelHead : size-1])
		if err != nil || crc32.Update(chain, castagnoli, rest[labelHead:size-1]) != sum {
			return nil, 0, 0, fmt.Errorf("the record at %d is damaged", at)
		}
		again, after, err := encodeLabel(chain, l)
		if err != nil || string(again) != string(rest[:size]) {
			return nil, 0, 0, fmt.Errorf("the record at %d is not in the form in which it is written", at)
		}
		labels, at, chain = append(labels, l), at+size, after
	}
}

// labelNumber reads one of the numbers of a head. Whether it is in the one form that is written is checked with the whole
// record.
func labelNumber(b []byte) (uint32, bool) {
	n, err := strconv.ParseUint(string(b[:8]), 16, 32)
	return uint32(n), err == nil && b[8] == ' '
}

// torn reports whether a crash can have left this: too short for the head of a record, or a size without the bytes.
func torn(rest []byte) bool {
	if len(rest) < labelHead {
		return true
	}
	for _, c := range rest {
		if c != 0 {
			return false
		}
	}
	return true
}

func (s *Store) chain() uint32 { return crc32.Checksum([]byte(s.id), castagnoli) }

// labels reads the log.
func (s *Store) labels() (list []label, whole int, next uint32, err error) {
	data, err := s.dir.ReadFile(labelsFile, labelsLimit)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("rollback: %w", err)
	}
	list, whole, next, err = decodeLabels(s.chain(), data)
	if err != nil {
		return nil, 0, 0, &CorruptError{Object: labelsFile, Why: err.Error()}
	}
	return list, whole, next, nil
}

// pins says which checkpoints are pinned, and why.
func (s *Store) pins() (map[ID]string, error) {
	list, _, _, err := s.labels()
	if err != nil {
		return nil, err
	}
	pins := map[ID]string{}
	for _, l := range list {
		switch l.Op {
		case labelPin:
			pins[l.ID] = l.Why
		case labelUnpin:
			delete(pins, l.ID)
		}
	}
	return pins, nil
}

// addLabel appends to labels.log, durably. Time is filled in.
func (s *Store) addLabel(ctx context.Context, l label) error {
	unlock, err := s.lock(ctx, labelsFile, lockMode{exclusive: true, wait: true})
	if err != nil {
		return err
	}
	defer unlock()
	_, whole, chain, err := s.labels()
	if err != nil {
		return err
	}
	l.Time = time.Now().Round(0).UTC()
	record, _, err := encodeLabel(chain, l)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	if int64(whole+len(record)) > labelsLimit {
		return fmt.Errorf("rollback: %s is full: %w", s.join(labelsFile), ErrTooLarge)
	}
	if err := s.appendLabel(int64(whole), record); err != nil {
		return fmt.Errorf("rollback: write %s: %w", s.join(labelsFile), s.noSpace(err))
	}
	return nil
}

// appendLabel cuts off what a crash left, and appends.
func (s *Store) appendLabel(whole int64, record []byte) error {
	f, err := s.dir.Append(labelsFile)
	if err != nil {
		return err
	}
	err = f.Truncate(whole)
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil {
		s.step("labels/append")
		_, err = f.Write(record)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(whole)) // what was not promised should not be there
	}
	return errors.Join(err, f.Close())
}
