// SPDX-License-Identifier: Apache-2.0

package capture

// keeper holds the first max bytes of a stream and the last max bytes of the rest. Its memory grows with what arrives:
// a run that prints ten bytes costs one small allocation.
type keeper struct {
	max   int
	total int64
	head  []byte // its spare capacity is where the next bytes are read to
	tail  []byte // grows to max; then it is a ring whose oldest byte is at next
	next  int
	buf   []byte // where bytes are read to once head is full
}

// space returns where the next bytes are to be read to. Nobody else looks at that memory before add is called, so it
// may be filled without a lock.
func (k *keeper) space() []byte {
	if len(k.head) < k.max {
		if len(k.head) == cap(k.head) {
			k.growHead()
		}
		return k.head[len(k.head):cap(k.head)]
	}
	if k.buf == nil {
		k.buf = make([]byte, bigRead)
	}
	return k.buf
}

// growHead multiplies the capacity, never beyond max: what does not fit in there belongs in tail.
func (k *keeper) growHead() {
	grown := make([]byte, len(k.head), min(max(firstRead, 4*cap(k.head)), k.max))
	copy(grown, k.head)
	k.head = grown
}

// add accounts for p, which lies at the beginning of what space returned.
func (k *keeper) add(p []byte) {
	k.total += int64(len(p))
	if len(k.head) < k.max {
		k.head = k.head[:len(k.head)+len(p)]
		return
	}
	k.addTail(p)
}

func (k *keeper) addTail(p []byte) {
	if len(p) > k.max {
		p = p[len(p)-k.max:] // only these can survive
	}
	if room := k.max - len(k.tail); room > 0 {
		n := min(room, len(p))
		if need := len(k.tail) + n; need > cap(k.tail) {
			grown := make([]byte, len(k.tail), min(max(firstRead, 2*cap(k.tail), need), k.max))
			copy(grown, k.tail)
			k.tail = grown
		}
		k.tail = append(k.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(k.tail[k.next:], p)
		p = p[n:]
		k.next = (k.next + n) % k.max
	}
}

// result returns what is kept, the ring laid out straight. The slices are no longer written to afterwards, because the
// caller has marked the stream as stopped.
func (k *keeper) result() Result {
	tail := k.tail
	if k.next != 0 {
		tail = append(append(make([]byte, 0, len(tail)), tail[k.next:]...), tail[:k.next]...)
	}
	kept := int64(len(k.head) + len(tail))
	return Result{
		Head:      k.head[:len(k.head):len(k.head)],
		Tail:      tail,
		Total:     k.total,
		Truncated: k.total > kept,
	}
}
