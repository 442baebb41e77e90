// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"net"
	"strings"
	"sync"
	"time"
)

// mailbox collects what arrives at the host's listeners.
type mailbox struct {
	mu   sync.Mutex
	text strings.Builder
	met  int
}

// put records one arrival; an empty one counts as much as any.
func (m *mailbox) put(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.met++
	m.text.Write(b)
}

// got waits a moment for what is under way and reports whether anything came at all.
func (m *mailbox) got() bool {
	return eventually(60*time.Millisecond, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.met > 0
	})
}

// listen accepts connections of any stream kind; an accepted connection counts, whatever it carries.
func (s *scene) listen(network, address string) (net.Listener, *mailbox, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, nil, s.fault(err)
	}
	s.later(func() { _ = l.Close() })
	box := &mailbox{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			box.put(nil)
			_ = conn.Close()
		}
	}()
	return l, box, nil
}

// listenPacket receives datagrams and answers each as a name server would, so that a lookup ends.
func (s *scene) listenPacket(network, address string) (net.PacketConn, *mailbox, error) {
	c, err := net.ListenPacket(network, address)
	if err != nil {
		return nil, nil, s.fault(err)
	}
	s.later(func() { _ = c.Close() })
	box := &mailbox{}
	go func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			box.put(buf[:n])
			_, _ = c.WriteTo(refuseName(buf[:n]), from)
		}
	}()
	return c, box, nil
}

// refuseName turns a query into the answer that the name does not exist, so that the control ends quickly.
func refuseName(query []byte) []byte {
	answer := append([]byte(nil), query...)
	if len(answer) > 3 {
		answer[2] |= 0x80                // it is a response
		answer[3] = answer[3]&0xf0 | 0x3 // no such name
	}
	return answer
}
