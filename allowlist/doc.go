// SPDX-License-Identifier: Apache-2.0

// Package allowlist decides which bytes a program that changes its own code may write, and writes them.
//
// A self-modifying loop generates an edit, writes it into its tree, and runs its tests there. The generator is taken to
// be hostile: a model that was tuned on its own output may learn to move its guardrails, and a name can be spelled,
// linked and swapped in more ways than a list of strings foresees. So the package guards bytes and inodes, not names.
// A patch is parsed into edits in memory; the edits are judged; those same bytes are written through a handle that is
// confined to the tree. Nothing hands out an approved path for somebody else to open.
//
//	policy, err := allowlist.LoadFile("/etc/loop/policy.yaml")
//	tree, err := allowlist.OpenTree(dir, nil)
//	edits, err := allowlist.ParsePatch(patch, tree)
//	plan, err := policy.Plan(tree, edits)   // *DeniedError: all denials at once, nothing written
//	receipt, err := plan.Apply(ctx)         // all of it, or nothing
//
// # Rules
//
// Protected names come first, then the surface, then default deny; the order of rules in a policy never matters, and
// there is no negation. A path is refused unless it is relative, canonical and harmless on every system. Protected are
// the names of an embedded list (version control, CI, agents, secrets; what builds, test runners and shells start or
// load; what brings in code; what cannot be reviewed), the operator's own (protect, gate), and the guard itself.
// A protect pattern of one component holds at any depth ("configs", "configs/" and "configs/**" alike), one with a slash
// inside is anchored at the root; case and disguise do not matter. Surface patterns are anchored and exact in case:
// src/** matches what is below src.
//
// Patterns are a subset of doublestar: * and ? do not cross a slash, ** is a whole component, [a-z] and {a,b} work, and
// a literal bracket is written [[]. A slash at the end means "/**".
//
// Explain answers for one path without a tree. Narrow makes a policy for one agent, which never allows more.
//
// # Errors
//
// A policy that is refused is a *ConfigError, which matches ErrConfig and lists every problem with file, line and the
// way out. Unknown keys and rules that can never have an effect are problems: a rule that its author believes in, and
// that does nothing, is how guards fail. Denied edits are a *DeniedError, which lists all of them, each with a Code.
// Each Code is its own sentinel: errors.Is(err, ErrProtected) finds one denial among many. Any other error is one of
// input or output; it denies, too.
//
// # What it does not do
//
// It is no sandbox. A process of the same user that is alive during Apply can move a real directory between two calls,
// and the write follows it: end the candidate's processes first. A variant that passes can do anything in its tests;
// that needs package executor. Verify detects a change of protected names, and does not prevent it.
//
// It does not judge code inside the surface, does not look for secrets, and gives no guarantee of meaning under markers:
// they limit bytes. Extended attributes and access control lists are not carried over. There are no archives, binary
// patches, renames or mode changes. Where openat2 or the exchange of files is not to be had, Apply walks component by
// component and compares before it renames, which is no compare-and-swap. Apply is atomic against errors, not against a crash: package rollback restores the
// checkpoint that was taken before.
//
// The list of protected names ages. It is data, and a change to it is a reviewed change.
//
// It has not been verified on Windows and macOS, where openat2 is denied by a seccomp filter that kills, nor exchanges
// of files on NFS, btrfs and xfs.
package allowlist
