// SPDX-License-Identifier: Apache-2.0

package allowlist

// Explain judges an edit without a tree: path grammar, protected names, surface and operation. It reads nothing, and is
// for command lines, tests and hints. An edit that it allows may still be denied by Plan, which also looks at the tree,
// at the other edits and at the content.
func (p *Policy) Explain(op Op, path string) Decision {
	d, _ := p.judge(op, path)
	return d
}
