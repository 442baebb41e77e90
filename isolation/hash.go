// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Hash returns the hexadecimal SHA-256 of what is decided on: the version of the policy, the facts, the conflicts, and
// who declared the model when. Evidence is left out; see there. It is the hash of this text, in one line:
//
//	{"policy":"adr0001/v1","generator":"local","host":"single-operator","externalSideEffects":"no",
//	"untrustedInput":"no","secrets":"none","unattended":"no","conflicts":["host"],"declaredBy":"A. Person",
//	"declaredAt":"2026-01-02T15:04:05Z"}
func (m TrustModel) Hash() string {
	var space [512]byte // enough for an ordinary model, so that nothing is allocated
	sum := sha256.Sum256(m.appendCanonical(space[:0]))
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// appendCanonical is written by hand because encoding/json takes longer than everything else that Decide does.
func (m TrustModel) appendCanonical(b []byte) []byte {
	f := factsOf(m)
	b = append(b, `{"policy":"`+PolicyVersion+`","generator":"`...)
	b = append(b, generatorNames[f.generator]...)
	b = append(b, `","host":"`...)
	b = append(b, hostNames[f.host]...)
	b = append(b, `","externalSideEffects":"`...)
	b = append(b, answerNames[f.effects]...)
	b = append(b, `","untrustedInput":"`...)
	b = append(b, answerNames[f.input]...)
	b = append(b, `","secrets":"`...)
	b = append(b, secretsNames[f.secrets]...)
	b = append(b, `","unattended":"`...)
	b = append(b, answerNames[f.unattended]...)
	b = append(b, `","conflicts":[`...)
	first := true
	for at, name := range factNames {
		if f.conflicts&(1<<at) == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), name...), '"')
	}
	b = append(b, `],"declaredBy":`...)
	b = appendJSONString(b, m.DeclaredBy)
	b = append(b, `,"declaredAt":"`...)
	b = m.DeclaredAt.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

// appendJSONString appends s as encoding/json does, without its escapes for HTML.
func appendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, canonicalJSON(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// canonicalJSON is the one form in which objects of this package are hashed and compared: fields in the order of the
// struct, no white space, and no escapes that only HTML needs.
func canonicalJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a time outside the years 0 to 9999 can do that here. It has no canonical form, and nil equals no file.
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
