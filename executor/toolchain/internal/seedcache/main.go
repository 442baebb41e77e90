// SPDX-License-Identifier: Apache-2.0

// Command seedcache is the build cache of a contained go command: it reads from a seed that nobody in the run can
// change, and keeps what the run adds in the run's own cache directory. The go command starts it because GOCACHEPROG
// names it, and talks to it in the protocol of cmd/go/internal/cacheprog (Go 1.24).
//
//	seedcache seed DIR
//	seedcache record GOCACHE
//
// DIR is a directory with a file "index" and outputs. What is added lies in $GOCACHE/own; the go command sets GOCACHE
// for its children. With "record", which the host uses to make a seed, everything that is asked for is added, and
// what is not there is taken from the other cache.
//
// # What it does not do
//
// It verifies nothing and protects nothing: it has the rights of the payload, which may do without it. That the seed
// cannot be changed is the executor's work, and that it is the right one the host's.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if filepath.Base(os.Args[0]) == "true" {
		return // as go test -exec: for what is to be compiled and not to be run
	}
	if err := serve(os.Args[1:], os.Getenv("GOCACHE"), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "seedcache:", err)
		os.Exit(1)
	}
}

// request and response have the fields of the protocol that are used here.
type request struct {
	ID       int64
	Command  string
	ActionID []byte
	OutputID []byte
	BodySize int64
}

type response struct {
	ID            int64
	Err           string   `json:",omitempty"`
	KnownCommands []string `json:",omitempty"`
	Miss          bool     `json:",omitempty"`
	OutputID      []byte   `json:",omitempty"`
	Size          int64    `json:",omitempty"`
	DiskPath      string   `json:",omitempty"`
}

// serve answers one request after the other: the go command asks for most of them one at a time anyway.
func serve(args []string, gocache string, in io.Reader, out io.Writer) error {
	c, err := open(args, gocache)
	if err != nil {
		return err
	}
	requests, buffered := json.NewDecoder(bufio.NewReaderSize(in, 64<<10)), bufio.NewWriter(out)
	answers := json.NewEncoder(buffered)
	send := func(a response) error { return errors.Join(answers.Encode(a), buffered.Flush()) }
	if err := send(response{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil // the go command was killed
		} else if err != nil {
			return err
		}
		var body []byte
		if r.Command == "put" && r.BodySize > 0 {
			if err := requests.Decode(&body); err != nil {
				return err
			}
		}
		if err := send(c.answer(r, body)); err != nil || r.Command == "close" {
			return err
		}
	}
}
