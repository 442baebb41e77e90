// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/evoseal/containment/executor"
)

// networkCases reach for listeners of this process on loopback. No other address is ever asked, under the control least
// of all.
func networkCases() []Case {
	off := executor.NetworkOff
	return []Case{
		attack("tcp", "any service of the host on loopback trusts whoever connects", off, streamCase("tcp",
			"127.0.0.1:0")),
		attack("udp", "a rule about TCP says nothing about UDP", off, udpReach),
		attack("mptcp", "Multipath TCP passes rules about TCP, and other protocols do too", off, protocols),
		attack("abstract-unix", "abstract sockets have no file that a mount could hide (CVE-2020-15257)",
			off, streamCase("unix", "@")),
		attack("path-unix", "a runtime's socket in the file system is root on the host",
			off|executor.HostFilesHidden, streamCase("unix", "path")),
		attack("unix-datagram", "a datagram socket needs no connection to deliver",
			off|executor.HostFilesHidden, unixDatagram),
		alone(attack("dns", "a name lookup carries data out; refused, it must fail at once and not hang the run",
			off, dnsReach)),
		attack("bind-host", "a listener of the run on the host's loopback is met by the host's programs",
			off, bindHost),
	}
}

// socketPath is a socket in a directory that everybody may enter, with a mode that lets everybody connect.
func (s *scene) socketPath() (string, error) {
	dir, err := s.mkdir("run", 0o777)
	return filepath.Join(dir, "s"), err
}

// streamCase makes a probe of one listener: the accept log of the host is the verdict.
func streamCase(network, address string) probe {
	return func(s *scene) error {
		at := address
		switch address {
		case "@":
			at = "@executortest-" + s.tag
		case "path":
			var err error
			if at, err = s.socketPath(); err != nil {
				return s.fault(err)
			}
		}
		l, box, err := s.listen(network, at)
		if err != nil {
			return err
		}
		if address == "path" {
			_ = os.Chmod(at, 0o777)
		}
		return s.mustNotArrive(box, s.spec("dial", job{Name: network, Paths: []string{l.Addr().String()}}))
	}
}

// mustNotArrive runs an attempt, demands that nothing came and that the refusal was quick: C8.
func (s *scene) mustNotArrive(box *mailbox, spec executor.Spec) error {
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if box.got() {
		return s.breach("the payload reached a listener of the host")
	}
	if res.Usage.Wall > 3*time.Second {
		return s.tooLate("the refusal took %v", res.Usage.Wall)
	}
	return nil
}

// udpReach sends a datagram; there is no connection that a rule could see.
func udpReach(s *scene) error {
	c, box, err := s.listenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return s.mustNotArrive(box, s.spec("dial", job{Name: "udp", Paths: []string{c.LocalAddr().String()}}))
}

// protocols tries every stream protocol that a TCP listener answers to. Without Multipath TCP in the kernel plain TCP
// keeps the control conclusive.
func protocols(s *scene) error {
	var lc net.ListenConfig
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(s.ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return s.fault(err)
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
	_, port, _ := net.SplitHostPort(l.Addr().String())
	number, _ := strconv.Atoi(port)
	return s.mustNotArrive(box, s.spec("protocols", job{N: int64(number)}))
}

// unixDatagram addresses a socket by path, as syslog is addressed on every host.
func unixDatagram(s *scene) error {
	at, err := s.socketPath()
	if err != nil {
		return s.fault(err)
	}
	_, box, err := s.listenPacket("unixgram", at)
	if err != nil {
		return err
	}
	_ = os.Chmod(at, 0o777)
	return s.mustNotArrive(box, s.spec("dial", job{Name: "unixgram", Paths: []string{at}}))
}

// dnsReach plays the name server. Under the executor the lookup must fail within 200 ms, as the payload measures it.
func dnsReach(s *scene) error {
	c, box, err := s.listenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	res, err := s.reach(s.spec("dns", job{Paths: []string{c.LocalAddr().String()}, Name: "x" + s.tag + ".invalid."}))
	if err != nil {
		return err
	}
	if box.got() {
		return s.breach("a name lookup reached a server outside")
	}
	took := answers(res.Stdout.Bytes(), "ms")
	if len(took) != 1 {
		return inconclusive(s.name, "the payload did not say how long the lookup took: %s", describe(res))
	}
	if ms, err := strconv.Atoi(took[0]); err != nil || ms > 200 {
		return s.tooLate("a refused lookup took %s ms", took[0])
	}
	return nil
}

// bindHost lets the run listen and connects from outside.
func bindHost(s *scene) error {
	h, err := s.hold("bind", job{}, nil)
	if err != nil {
		return err
	}
	met := false
	for _, at := range answers(h.out.Bytes(), "bound") {
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		buf := make([]byte, 64)
		n, _ := conn.Read(buf)
		_ = conn.Close()
		met = met || string(buf[:n]) == proofOf(s.nonce)
	}
	if _, err := h.release(); err != nil {
		return err
	}
	if met {
		return s.breach("the host met a listener of the run on its own loopback")
	}
	return nil
}
