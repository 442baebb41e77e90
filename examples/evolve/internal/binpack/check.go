// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrPacking matches every answer that is no packing of the instances.
var ErrPacking = errors.New("binpack: this is no packing of the instances")

// Check reads the packings that a variant has left behind: for each instance, in order, the bin of each item, as
// 32-bit little-endian numbers and nothing else. The bins of an instance must be numbered in the order in which they
// are opened, and none may hold more than its capacity. It returns the number of bins of each instance. Nothing that
// the variant claims is taken over.
func Check(instances []Instance, data []byte) ([]int, error) {
	items := 0
	for i := range instances {
		items += len(instances[i].Items)
	}
	if len(data) != 4*items {
		return nil, fmt.Errorf("%w: %d bytes, for %d items there must be %d", ErrPacking, len(data), items, 4*items)
	}
	bins := make([]int, len(instances))
	for i := range instances {
		in := &instances[i]
		var room []int
		for j, item := range in.Items {
			bin := binary.LittleEndian.Uint32(data)
			data = data[4:]
			if uint64(bin) > uint64(len(room)) {
				return nil, fmt.Errorf("%w: item %d of %s is in bin %d when there are %d", ErrPacking, j, in.Name, bin, len(room))
			}
			if int(bin) == len(room) {
				room = append(room, in.Capacity)
			}
			if room[bin] < item {
				return nil, fmt.Errorf("%w: item %d of %s does not fit into bin %d", ErrPacking, j, in.Name, bin)
			}
			room[bin] -= item
		}
		bins[i] = len(room)
	}
	return bins, nil
}
