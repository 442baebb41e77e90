// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"strconv"
)

// outputPayloads are the payloads that write much.
func outputPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"flood":   floodPayload,
		"pattern": func(p *payload) { writeAll(1, pattern(int(p.job.N))) },
	}
}

// floodPayload writes N bytes that are not text to the streams that it is told.
func floodPayload(p *payload) {
	block := pattern(1 << 16)
	for done := int64(0); done < p.job.N; done += int64(len(block)) {
		if p.job.Name != "err" {
			writeAll(1, block)
		}
		if p.job.Name != "out" {
			writeAll(2, block)
		}
	}
	p.say("flooded", strconv.FormatInt(p.job.N, 10))
}

// pattern is a sequence of bytes that does not repeat soon and is not text.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}
