// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Chunk is a piece of a large file. Pieces lie on a grid of ChunkLen, so that the list follows from the bytes alone:
// one of zeros only is a hole, and holes in a row are one.
type Chunk struct {
	Hash Hash  // of the Blob; zero for a hole
	Len  int64 // bytes
	Hole bool
}

const (
	chunksMagic = "rbC1"
	chunkWidth  = 1 + 8 + len(Hash{})
)

// EncodeChunks writes the list. It does not check it; DecodeChunks does.
func EncodeChunks(chunks []Chunk) []byte {
	b := make([]byte, 0, len(chunksMagic)+len(chunks)*chunkWidth)
	b = append(b, chunksMagic...)
	for _, c := range chunks {
		hole := byte(0)
		if c.Hole {
			hole = 1
		}
		b = append(b, hole)
		b = binary.BigEndian.AppendUint64(b, uint64(c.Len))
		b = append(b, c.Hash[:]...)
	}
	return b
}

// DecodeChunks reads what EncodeChunks wrote and refuses everything else.
func DecodeChunks(data []byte) ([]Chunk, error) {
	if len(data) < len(chunksMagic) || string(data[:len(chunksMagic)]) != chunksMagic {
		return nil, errors.New("not a list of chunks")
	}
	data = data[len(chunksMagic):]
	if len(data)%chunkWidth != 0 {
		return nil, errors.New("a list of chunks has bytes to spare")
	}
	chunks := make([]Chunk, len(data)/chunkWidth)
	var total int64
	for i := range chunks {
		row := data[i*chunkWidth : (i+1)*chunkWidth]
		c := Chunk{Hole: row[0] == 1, Len: int64(binary.BigEndian.Uint64(row[1:])), Hash: Hash(row[9:])}
		if row[0] > 1 {
			return nil, fmt.Errorf("chunk %d is of unknown kind %d", i, row[0])
		}
		if err := c.check(i > 0 && chunks[i-1].Hole, i == len(chunks)-1); err != nil {
			return nil, fmt.Errorf("chunk %d: %w", i, err)
		}
		if total += c.Len; total < 0 {
			return nil, errors.New("the chunks are longer than any file")
		}
		chunks[i] = c
	}
	if total <= MaxBlob {
		return nil, fmt.Errorf("a file of %d bytes is not stored in chunks", total)
	}
	return chunks, nil
}

// check enforces the grid.
func (c Chunk) check(afterHole, last bool) error {
	switch {
	case c.Len <= 0:
		return errors.New("is empty")
	case c.Hole && afterHole:
		return errors.New("a hole follows a hole")
	case c.Hole && c.Hash != Hash{}:
		return errors.New("a hole has a hash")
	case !last && c.Len%ChunkLen != 0, !c.Hole && c.Len > ChunkLen:
		return fmt.Errorf("%d bytes leave the grid of %d", c.Len, ChunkLen)
	}
	return nil
}
