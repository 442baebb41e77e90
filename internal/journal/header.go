// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
)

// formatVersion is the only format that this version of the package reads.
const formatVersion = 1

// headerLine is the first line as JSON. The order of the fields is part of the format.
type headerLine struct {
	N      uint64     `json:"n"`
	Prev   string     `json:"prev"`
	Header headerBody `json:"header"`
}

type headerBody struct {
	Format   int             `json:"format"`
	Kind     string          `json:"kind"`
	ID       string          `json:"id"`
	Data     json.RawMessage `json:"data"`
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
}

// encodeHeader makes the first line of a file. The caller's objects are taken over as they are, so they are checked
// before.
func encodeHeader(h Header, prev [32]byte) ([]byte, error) {
	b := append(appendFront(nil, h.Seq, prev), `"header":{"format":1,"kind":`...)
	for _, part := range []struct{ text, tag string }{{h.Kind, `,"id":`}, {h.ID, `,"data":`}} {
		quoted, err := json.Marshal(part.text)
		if err != nil {
			return nil, err
		}
		b = append(append(b, quoted...), part.tag...)
	}
	b = append(b, h.Payload...)
	if h.Snapshot != nil {
		b = append(append(b, `,"snapshot":`...), h.Snapshot...)
	}
	b = append(b, '}')
	return appendTrail(b, b), nil
}

// parseHeader takes the first line apart. It encodes what it found again and compares, so that no byte escapes it.
func parseHeader(line []byte, kind, id string) (h Header, rule string) {
	var parsed headerLine
	var prev [32]byte
	if len(line) < lenTrail || !trailMatches(line) {
		return h, "the header's checksum does not match"
	}
	if err := json.Unmarshal(line, &parsed); err != nil {
		return h, "it is no header: " + err.Error()
	}
	if parsed.Header.Format != formatVersion {
		return h, "its format is not known to this version"
	}
	if digits := []byte(parsed.Prev); len(digits) != hex.EncodedLen(len(prev)) {
		return h, "it is no header: the hash of its predecessor has another length"
	} else if _, err := hex.Decode(prev[:], digits); err != nil {
		return h, "it is no header: " + err.Error()
	}
	h = Header{
		Seq: parsed.N, Kind: parsed.Header.Kind, ID: parsed.Header.ID,
		Payload: parsed.Header.Data, Snapshot: parsed.Header.Snapshot,
	}
	again, err := encodeHeader(h, prev)
	switch {
	case err != nil || !bytes.Equal(again, line) || !isLine(h.Payload):
		return h, "it is no header"
	case (h.Seq == 0) != (h.Snapshot == nil), h.Seq == 0 && prev != [32]byte{}, h.Snapshot != nil && !isLine(h.Snapshot):
		return h, "a file that goes on needs a snapshot, and one that begins must not have any"
	case h.Kind != kind || h.ID != id:
		return h, "it is the journal of another kind or id"
	}
	return h, ""
}
