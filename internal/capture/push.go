// SPDX-License-Identifier: Apache-2.0

package capture

// Pushed is a stream whose bytes somebody else has read, out of something that is more than one stream.
type Pushed struct{ s *Stream }

// Push makes a stream that takes what is written to it. Write and End are called by one goroutine.
func Push(o Options) *Pushed { return &Pushed{newStream(o)} }

// Write takes p. It never fails and takes no longer than the patience with a live writer.
func (p *Pushed) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		p.s.mu.Lock()
		buf := p.s.keep.space()
		p.s.mu.Unlock()
		n := copy(buf, rest)
		if !p.s.take(buf[:n]) {
			break
		}
		rest = rest[n:]
	}
	return len(data), nil
}

// End says that the end of the stream was seen. Without it the result is Incomplete.
func (p *Pushed) End() {
	p.s.mu.Lock()
	p.s.eof = true
	p.s.mu.Unlock()
}

// Finish returns the result, after a bounded time for the live copy; see [Stream.Finish].
func (p *Pushed) Finish() Result {
	p.s.finish.Do(p.s.conclude)
	return p.s.finished
}
