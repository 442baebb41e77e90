// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// window is the last iterations that were judged, as a ring.
type window struct {
	Failed   []bool `json:"failed"`
	Next     int    `json:"next"` // the oldest, once the ring is full
	Failures int    `json:"failures"`
}

func (w *window) add(failed bool, size int) {
	if len(w.Failed) > size || len(w.Failed) < size && w.Next != 0 {
		w.resize(size)
	}
	if len(w.Failed) < size {
		w.Failed = append(w.Failed, failed)
	} else {
		w.Failures -= btoi(w.Failed[w.Next])
		w.Failed[w.Next] = failed
		w.Next = (w.Next + 1) % size
	}
	w.Failures += btoi(failed)
}

// resize keeps the newest entries, for limits that changed.
func (w *window) resize(size int) {
	inOrder := slices.Concat(w.Failed[w.Next:], w.Failed[:w.Next])
	inOrder = inOrder[max(0, len(inOrder)-size):]
	*w = window{Failed: inOrder}
	for _, failed := range inOrder {
		w.Failures += btoi(failed)
	}
}

// cycles is how often a period has to repeat before it counts. gemini-cli uses the same number for tool calls.
const cycles = 5

// heads are the last accepted states.
type heads []Fingerprint

func (h *heads) add(f Fingerprint, maxCycle int) {
	keep := cycles * maxCycle
	if len(*h) >= 2*keep { // moved seldom, so that adding is cheap
		*h = append((*h)[:0], (*h)[len(*h)-keep+1:]...)
	}
	*h = append(*h, f)
}

// period returns the shortest period from 2 to maxCycle with which the newest heads repeat; 0 if there is none. The
// same head again and again has every period.
func (h heads) period(maxCycle int) int {
	for k := 2; k <= maxCycle; k++ {
		if len(h) < cycles*k {
			return 0
		}
		last := h[len(h)-cycles*k:]
		if slices.Equal(last[k:], last[:len(last)-k]) {
			return k
		}
	}
	return 0
}

// prints is a set of fingerprints. In a snapshot it is one base64 text, in order.
type prints map[Fingerprint]struct{}

func (p prints) has(f Fingerprint) bool {
	_, ok := p[f]
	return ok
}

func (p *prints) add(f Fingerprint) {
	if *p == nil {
		*p = prints{}
	}
	(*p)[f] = struct{}{}
}

// MarshalJSON writes the fingerprints one after another.
func (p prints) MarshalJSON() ([]byte, error) {
	sorted := make([]Fingerprint, 0, len(p))
	for f := range p {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b Fingerprint) int { return bytes.Compare(a[:], b[:]) })
	raw := make([]byte, 0, len(p)*len(Fingerprint{}))
	for _, f := range sorted {
		raw = append(raw, f[:]...)
	}
	return json.Marshal(raw)
}

// UnmarshalJSON reads them.
func (p *prints) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(raw)%len(Fingerprint{}) != 0 {
		return errors.New("runaway: half a fingerprint")
	}
	*p = nil
	for ; len(raw) > 0; raw = raw[len(Fingerprint{}):] {
		p.add(Fingerprint(raw))
	}
	return nil
}

// rateSlots is into how many parts a RateWindow is cut.
const rateSlots = 60

// rate is what was spent in the last RateWindow of active time, and up to a sixtieth of it longer.
type rate struct {
	Slots [rateSlots + 1]amounts `json:"slots"`
	At    int64                  `json:"at"` // number of the newest slot since the beginning of the run
	Sum   amounts                `json:"sum"`

	until time.Duration // active time at which the newest slot is over; 0: not known
}

func (w *rate) add(a *amounts, active, width time.Duration) {
	if active >= w.until {
		w.move(active, width)
	}
	w.Slots[w.At%int64(len(w.Slots))].add(a)
	w.Sum.add(a)
}

// move forgets what is too old.
func (w *rate) move(active, width time.Duration) {
	at := int64(active / width)
	w.until = time.Duration(max(at, w.At)+1) * width
	if at <= w.At {
		return
	}
	for range min(at-w.At, int64(len(w.Slots))) {
		w.At++
		w.Slots[w.At%int64(len(w.Slots))] = amounts{}
	}
	w.At, w.Sum = at, amounts{}
	for i := range w.Slots { // not subtracted: a sum that is saturated no longer knows what it holds
		w.Sum.add(&w.Slots[i])
	}
}

// resize keeps what was spent, as if it had been spent just now: other slots would mean other times.
func (w *rate) resize(active, width time.Duration) {
	sum := w.Sum
	*w = rate{At: int64(active / width)}
	w.Slots[w.At%int64(len(w.Slots))], w.Sum = sum, sum
}
