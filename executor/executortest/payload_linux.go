// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"strconv"
	"syscall"
)

// marker is the first argument that turns a process into a payload. It is followed by the payload's name and the tag by
// which the host finds the process in /proc.
const marker = "executortest-payload-v1"

// Fixed positions in the argument list of a payload.
const (
	argMarker = 1
	argName   = 2
	argTag    = 3
	argNoJob  = 4 // "nojob": standard input belongs to the test, there is no job on it
)

const noJob = "nojob"

// init turns the process into a payload if it was started as one, before main, flags and other packages that depend on
// this one. Nothing else happens here.
func init() {
	if len(os.Args) <= argTag || os.Args[argMarker] != marker {
		return
	}
	p := &payload{tag: os.Args[argTag]}
	if len(os.Args) <= argNoJob || os.Args[argNoJob] != noJob {
		p.readJob()
	}
	run, known := payloadTable()[os.Args[argName]]
	if !known {
		p.die("no payload is called " + os.Args[argName])
	}
	run(p)
	exit(0)
}

// payloadTable collects the payloads of every theme. It is a function, so that ordinary processes do not pay for it.
func payloadTable() map[string]func(*payload) {
	all := map[string]func(*payload){}
	for _, table := range []map[string]func(*payload){
		basicPayloads(), envPayloads(), hostPayloads(), filePayloads(), networkPayloads(), syscallPayloads(),
		treePayloads(), limitPayloads(), outputPayloads(), artifactPayloads(), rootPayloads(), abiPayloads(),
		launcherPayloads(),
	} {
		maps.Copy(all, table)
	}
	return all
}

// payload is the state of a process that runs as one.
type payload struct {
	tag string
	job job
}

// job is what the host tells a payload, as one line of JSON on standard input: unlike an argument list it cannot be read
// by anybody else. Its fields mean what the payload makes of them.
type job struct {
	Nonce string
	Text  string
	Name  string
	Paths []string
	Pid   int
	Addr  uint64
	N     int64
}

// readJob reads one line and not a byte more: the rest of standard input is the payload's.
func (p *payload) readJob() {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := syscall.Read(0, one)
		if err == syscall.EINTR {
			continue
		}
		if n != 1 || one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	if err := json.Unmarshal(line, &p.job); err != nil {
		p.die("job: " + err.Error())
	}
}

// proofOf is what a payload says to prove that it ran: it cannot be copied from anything that the host said.
func proofOf(nonce string) string {
	sum := sha256.Sum256([]byte("executortest reached " + nonce))
	return hex.EncodeToString(sum[:16])
}

// reached proves that the payload stands directly before its attack. Without a job the tag stands in for the nonce.
func (p *payload) reached() {
	nonce := p.job.Nonce
	if nonce == "" {
		nonce = p.tag
	}
	p.say("reached", proofOf(nonce))
}

// say writes one answer as a line of its own, in one write, so that processes of one run do not mix theirs.
func (p *payload) say(kind, text string) {
	writeAll(1, []byte(kind+" "+strconv.Quote(text)+"\n"))
}

// sayErr reports how a call ended: "ok" or the error's text.
func (p *payload) sayErr(kind string, err error) {
	text := "ok"
	if err != nil {
		text = err.Error()
	}
	p.say(kind, text)
}

// die ends a payload that cannot even try. The text goes to stderr, which the suite shows with the failure.
func (p *payload) die(text string) {
	_, _ = syscall.Write(2, []byte("payload: "+text+"\n"))
	exit(99)
}

// wait returns when the host closes standard input, or was killed.
func (p *payload) wait() {
	buf := make([]byte, 512)
	for {
		n, err := syscall.Read(0, buf)
		if err != syscall.EINTR && n <= 0 {
			return
		}
	}
}

// exit ends the process at once, without the hooks that a coverage or race build runs at its end: their output would
// stand among the payload's.
func exit(code int) { syscall.Exit(code) }

// answers returns what the payload said under one kind, in order. A line that was cut by the capture is left out.
func answers(out []byte, kind string) []string {
	var texts []string
	for line := range bytes.Lines(out) {
		quoted, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte(kind+" "))
		if !ok {
			continue
		}
		if text, err := strconv.Unquote(string(quoted)); err == nil {
			texts = append(texts, text)
		}
	}
	return texts
}

// writeAll writes to a stream and gives up when nobody reads it any more.
func writeAll(fd int, b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err != nil && err != syscall.EINTR && err != syscall.EAGAIN {
			exit(98)
		}
		b = b[max(n, 0):]
	}
}
