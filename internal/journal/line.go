// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"unicode/utf8"
)

// castagnoli finds every single burst of errors of up to 32 bits.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	tagData   = `"data":`
	tagCut    = `"cut":`
	tagCRC    = `,"crc":"`
	endOfLine = "\"}\n"
	lenTrail  = len(tagCRC) + 2*crc32.Size + len(endOfLine)
	lenFront  = 128 // at least what appendFront appends
)

// appendFront appends what every line begins with.
func appendFront(b []byte, seq uint64, prev [32]byte) []byte {
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, `,"prev":"`...)
	b = hex.AppendEncode(b, prev[:])
	return append(b, `",`...)
}

// appendTrail appends what ends a line that begins with body: the checksum of body, and the line end.
func appendTrail(b, body []byte) []byte {
	var sum [crc32.Size]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	b = append(b, tagCRC...)
	b = hex.AppendEncode(b, sum[:])
	return append(b, endOfLine...)
}

// dataLine makes the line of one record in b, which must be empty.
func dataLine(b []byte, seq uint64, prev [32]byte, payload []byte) []byte {
	b = append(appendFront(b, seq, prev), tagData...)
	b = append(b, payload...)
	return appendTrail(b, b)
}

// cutLine makes the line that says that n bytes were dropped.
func cutLine(seq uint64, prev [32]byte, n int64) []byte {
	b := append(appendFront(nil, seq, prev), tagCut...)
	b = strconv.AppendInt(b, n, 10)
	return appendTrail(b, b)
}

// headAt returns the state after the line.
func headAt(seq uint64, line []byte) Head { return Head{Seq: seq, Hash: sha256.Sum256(line)} }

// isObject reports whether p is one JSON object on one line.
func isObject(p []byte) bool { return isLine(p) && json.Valid(p) }

// isLine reports whether JSON is an object on one line. Valid JSON has no control bytes but white space.
func isLine(p []byte) bool {
	return len(p) > 1 && p[0] == '{' && p[len(p)-1] == '}' && !bytes.ContainsAny(p, "\n\r\t") && utf8.Valid(p)
}

// parseLine takes a whole line apart, if it is, byte for byte, what a record of this number after that hash looks like.
// The payload shares the line's memory. Otherwise it says what is wrong.
func parseLine(line []byte, seq uint64, prev [32]byte) (rec Record, rule string) {
	var buf [lenFront]byte
	front := appendFront(buf[:0], seq, prev)
	if !bytes.HasPrefix(line, front) {
		return rec, "its number and chain do not follow from the line before"
	}
	if len(line) < len(front)+lenTrail || !trailMatches(line) {
		return rec, "its checksum does not match"
	}
	content := line[len(front) : len(line)-lenTrail]
	if payload, ok := bytes.CutPrefix(content, []byte(tagData)); ok && isObject(payload) {
		return Record{Seq: seq, Payload: payload, Hash: sha256.Sum256(line)}, ""
	}
	if digits, ok := bytes.CutPrefix(content, []byte(tagCut)); ok {
		n, err := strconv.ParseInt(string(digits), 10, 64)
		if err == nil && n > 0 && n < MaxRecord && strconv.FormatInt(n, 10) == string(digits) {
			return Record{Seq: seq, Cut: n, Hash: sha256.Sum256(line)}, ""
		}
	}
	return rec, "it is neither a record nor the note of a cut"
}

// trailMatches reports whether the line, which is long enough, ends as its beginning demands.
func trailMatches(line []byte) bool {
	var buf [lenTrail]byte
	body, trail := line[:len(line)-lenTrail], line[len(line)-lenTrail:]
	return bytes.Equal(trail, appendTrail(buf[:0], body))
}

// holdsRecord reports whether a whole record, without its line end, and something else begin the tail. No write that was
// under way leaves that behind.
func holdsRecord(tail []byte, seq uint64, prev [32]byte) bool {
	line := make([]byte, 0, len(tail)+1)
	for i := 0; i < len(tail); {
		next := bytes.Index(tail[i:], []byte(tagCRC))
		if next < 0 {
			return false
		}
		i += next + 1
		if end := i - 1 + lenTrail - 1; end < len(tail) {
			line = append(append(line[:0], tail[:end]...), '\n')
			if _, rule := parseLine(line, seq, prev); rule == "" {
				return true
			}
		}
	}
	return false
}
