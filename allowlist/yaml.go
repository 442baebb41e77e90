// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxPolicy bounds a policy file, bytes.
const maxPolicy = 1 << 20

// Load reads a policy from strict YAML, of which JSON is a subset. It refuses what it does not know, and reports all
// that is wrong in one *ConfigError. An error of r is returned wrapped.
func Load(r io.Reader) (*Policy, error) { return load(r, "policy") }

// LoadFile is Load for a file. The base name of the file stands in Rule.Source. If the file lies in a tree that is
// opened, it is protected there; a relative path that the policy itself would let a variant change is refused at once.
func LoadFile(path string) (*Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("allowlist: policy file: %w", err)
	}
	defer f.Close()
	p, err := load(f, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if p.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("allowlist: policy file: %w", err)
	}
	if err := refuseOwnSurface(p, path); err != nil {
		return nil, err
	}
	return p, nil
}

// refuseOwnSurface refuses a policy that could be rewritten under itself. Where the tree is, nobody knows yet; a
// relative path is most likely relative to its root.
func refuseOwnSurface(p *Policy, path string) error {
	own := filepath.ToSlash(filepath.Clean(path))
	for _, op := range []Op{Modify, Create, Delete} {
		if d := p.Explain(op, own); filepath.IsLocal(path) && d.Allowed {
			var ps problems
			ps.at(origin{file: filepath.Base(path)}, fmt.Sprintf("the policy file %+q lies in its own surface (%q, %s)", own,
				d.Rule.Pattern, d.Rule.Source), "move it out of the tree, or list it in protect")
			return ps.err()
		}
	}
	return nil
}

func load(r io.Reader, file string) (*Policy, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPolicy+1))
	if err != nil {
		return nil, fmt.Errorf("allowlist: reading the policy: %w", err)
	}
	var ps problems
	top := origin{file: file}
	if len(data) > maxPolicy {
		ps.at(top, "the policy has more than 1 MiB", "a policy is a short text: write patterns, not lists of files")
		return nil, ps.err()
	}
	doc := parseYAML(data, top, &ps)
	if doc == nil {
		return nil, ps.err()
	}
	return build(newReader(data, &ps).policy(doc, top), &ps)
}

// yamlLine finds the line in a message of the YAML library, which has no type for it.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// parseYAML returns the root of the one document, or nil after a problem.
func parseYAML(data []byte, top origin, ps *problems) *yaml.Node {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		ps.at(top, "the policy is empty", "start with version: 1")
		return nil
	case err != nil:
		notYAML(err, top, ps)
		return nil
	}
	if err := dec.Decode(&second); err == nil {
		top.line = second.Line
		ps.at(top, "there is a second document", "keep one document, without a --- line between its parts")
	} else if !errors.Is(err, io.EOF) {
		notYAML(err, top, ps)
	}
	if len(doc.Content) != 1 {
		ps.at(top, "the policy is empty", "start with version: 1")
		return nil
	}
	return doc.Content[0]
}

func notYAML(err error, top origin, ps *problems) {
	what := err.Error()
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		top.line, _ = strconv.Atoi(m[1]) // no number is line 0: none
		what = m[2]
	}
	ps.at(top, "not YAML: "+what, "mend the syntax")
}
