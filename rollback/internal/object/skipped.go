// SPDX-License-Identifier: Apache-2.0

package object

import "errors"

const skippedMagic = "rbS1"

// Omission is something that a checkpoint left out, in Checkpoint.Skipped.
type Omission struct{ Path, Why string }

// EncodeSkipped writes the list, which is in strict byte order of its paths.
func EncodeSkipped(list []Omission) []byte {
	b := []byte(skippedMagic)
	for _, o := range list {
		b = appendShort(appendLong(b, o.Path), o.Why)
	}
	return b
}

// DecodeSkipped reads what EncodeSkipped wrote and refuses everything else.
func DecodeSkipped(data []byte) ([]Omission, error) {
	if len(data) < len(skippedMagic) || string(data[:len(skippedMagic)]) != skippedMagic {
		return nil, errors.New("not a list of what was skipped")
	}
	r := &reader{rest: string(data[len(skippedMagic):])}
	var list []Omission
	for r.rest != "" {
		o := Omission{Path: r.long32(), Why: r.short16()}
		if r.short {
			return nil, errShort
		}
		if o.Path == "" || len(list) > 0 && o.Path <= list[len(list)-1].Path {
			return nil, errors.New("the list is not in order")
		}
		list = append(list, o)
	}
	return list, nil
}
