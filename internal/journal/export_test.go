// SPDX-License-Identifier: Apache-2.0

package journal

// FileBytes returns the bytes of the file up to the end of the last line.
func FileBytes(j *Journal) ([]byte, error) {
	data := make([]byte, j.size)
	_, err := j.files.journal.ReadAt(data, 0)
	return data, err
}

// Seal makes a line of body: its checksum and its end.
func Seal(body string) []byte { return appendTrail([]byte(body), []byte(body)) }
