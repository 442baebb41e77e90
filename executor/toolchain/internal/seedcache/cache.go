// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cache is a seed with the run's own entries beside it.
type cache struct {
	seed  string
	index map[string]entry // of the seed, by action; read once, since a file for each entry would cost more than the rest
	own   string
	disk  string // the cache of a go command without this program
}

// entry is what the seed holds for an action.
type entry struct {
	output string
	size   int64
}

func open(args []string, gocache string) (*cache, error) {
	if !filepath.IsAbs(gocache) {
		return nil, errors.New("GOCACHE must be an absolute path; the go command sets it")
	}
	c := &cache{own: filepath.Join(gocache, "own"), index: map[string]entry{}}
	switch {
	case len(args) == 2 && args[0] == "seed":
		c.seed = args[1]
		if err := c.readIndex(filepath.Join(c.seed, "index")); err != nil {
			return nil, err
		}
	case len(args) == 2 && args[0] == "record":
		c.disk = args[1]
	default:
		return nil, errors.New("usage: seedcache seed DIR, or seedcache record GOCACHE")
	}
	return c, os.MkdirAll(c.own, 0o777)
}

// readIndex reads lines of action, output and the output's size in bytes.
func (c *cache) readIndex(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%s: the line %q has not three fields", path, line)
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.index[fields[0]] = entry{fields[1], size}
	}
	return nil
}

func (c *cache) answer(r request, body []byte) response {
	a := response{ID: r.ID}
	var err error
	switch r.Command {
	case "get":
		err = c.get(r.ActionID, &a)
		if errors.Is(err, fs.ErrNotExist) {
			return response{ID: r.ID, Miss: true}
		}
	case "put":
		a.DiskPath, err = c.put(hex.EncodeToString(r.ActionID), hex.EncodeToString(r.OutputID), body)
	case "close":
	default:
		err = fmt.Errorf("unknown command %q", r.Command)
	}
	if err != nil {
		return response{ID: r.ID, Err: err.Error()}
	}
	return a
}

// get fills in the entry. The go command compares the size with that of the file, and misses if they differ.
func (c *cache) get(action []byte, a *response) (err error) {
	name := hex.EncodeToString(action)
	if e, ok := c.index[name]; ok {
		a.DiskPath, a.Size = filepath.Join(c.seed, e.output+"-d"), e.size
		a.OutputID, err = hex.DecodeString(e.output)
		return err
	}
	output, err := os.ReadFile(filepath.Join(c.own, name+"-a"))
	if errors.Is(err, fs.ErrNotExist) && c.disk != "" {
		output, err = c.take(name)
	}
	if err != nil {
		return err
	}
	a.DiskPath = filepath.Join(c.own, string(output)+"-d")
	fi, err := os.Stat(a.DiskPath)
	if err != nil {
		return err
	}
	a.Size = fi.Size()
	a.OutputID, err = hex.DecodeString(string(output))
	return err
}

// take copies an entry from the other cache and returns its output. The format is cmd/go's own and may change; then
// everything is a miss.
func (c *cache) take(action string) (output []byte, err error) {
	text, err := os.ReadFile(inDisk(c.disk, action, "-a"))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text)) // version, action, output, size, time
	if len(fields) != 5 || fields[0] != "v1" || fields[1] != action || len(fields[2]) != 2*sha256.Size {
		return nil, fs.ErrNotExist
	}
	body, err := os.ReadFile(inDisk(c.disk, fields[2], "-d"))
	if err != nil {
		return nil, fs.ErrNotExist // or a directory, which holds an executable
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != fields[2] {
		return nil, fs.ErrNotExist
	}
	_, err = c.put(action, fields[2], body)
	return []byte(fields[2]), err
}

func inDisk(dir, id, suffix string) string { return filepath.Join(dir, id[:2], id+suffix) }

// put stores the body. Several go commands of a run share these files, so each of them appears complete.
func (c *cache) put(action, output string, body []byte) (path string, err error) {
	path = filepath.Join(c.own, output+"-d")
	if fi, err := os.Stat(path); err != nil || fi.Size() != int64(len(body)) {
		if err := c.write(path, body); err != nil {
			return "", err
		}
	}
	return path, c.write(filepath.Join(c.own, action+"-a"), []byte(output))
}

// write makes or replaces a file in one step.
func (c *cache) write(path string, data []byte) error {
	f, err := os.CreateTemp(c.own, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
