// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// trustKeys are the names of the fields of a model in JSON.
var trustKeys = []string{
	"generator", "host", "externalSideEffects", "untrustedInput", "secrets", "unattended", "declaredBy",
	"declaredAt", "evidence", "conflicts",
}

// UnmarshalJSON reads a model strictly: a key that is not a field's, in this spelling, or is there twice, is an error
// that matches [ErrName]. A field that is left out is unknown. What m held before does not count.
func (m *TrustModel) UnmarshalJSON(data []byte) error {
	type plain TrustModel // without this method
	var read plain
	if err := exactKeys(data, trustKeys); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*m = TrustModel(read)
	return nil
}

// exactKeys refuses an object in which encoding/json would ignore a key, or take one that a reader does not.
func exactKeys(data []byte, known []string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("%w: a trust model is a JSON object", ErrName)
	}
	var seen []string
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		switch {
		case !slices.Contains(known, key):
			return fmt.Errorf("%w: a trust model has no field %q; it has %q", ErrName, key, known)
		case slices.Contains(seen, key):
			return fmt.Errorf("%w: field %q is there twice", ErrName, key)
		}
		seen = append(seen, key)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}
