// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"time"
)

// networkPayloads are the payloads that reach for a listener, or are one.
func networkPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"dial": dialPayload, "protocols": protocolsPayload, "dns": dnsPayload, "bind": bindPayload,
	}
}

// dialPayload connects and sends. It is told only addresses on loopback and paths of the scene.
func dialPayload(p *payload) {
	p.reached()
	for _, address := range p.job.Paths {
		conn, err := net.DialTimeout(p.job.Name, address, 5*time.Second)
		if err != nil {
			p.sayErr("dial", err)
			continue
		}
		_, err = conn.Write([]byte(p.job.Nonce))
		p.sayErr("dial", err)
		_ = conn.Close()
	}
}

// protocolsPayload connects with Multipath TCP, SCTP and plain TCP.
func protocolsPayload(p *payload) {
	p.reached()
	const mptcp, sctp = 262, 132
	for _, proto := range []int{mptcp, sctp, 0} {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, proto)
		if err == nil {
			err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(p.job.N), Addr: [4]byte{127, 0, 0, 1}})
			_ = syscall.Close(fd)
		}
		p.sayErr("protocol-"+strconv.Itoa(proto), err)
	}
}

// bindPayload listens and answers with the proof, so that the host knows whom it has met.
func bindPayload(p *payload) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	p.sayErr("listen", err)
	if err == nil {
		p.say("bound", l.Addr().String())
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte(proofOf(p.job.Nonce)))
				_ = conn.Close()
			}
		}()
	}
	p.reached()
	p.wait()
}

// dnsPayload looks a name up at the server of its job, with Go's own resolver, and says how long that took.
func dnsPayload(p *payload) {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", p.job.Paths[0])
	}}
	p.reached()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := r.LookupHost(ctx, p.job.Name)
	p.say("ms", strconv.FormatInt(time.Since(start).Milliseconds(), 10))
	p.sayErr("dns", err)
}
