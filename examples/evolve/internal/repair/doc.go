// SPDX-License-Identifier: Apache-2.0

// Package repair proposes fixes of one-line bugs in Go code: each variant differs from the accepted tree by one small
// change of the syntax tree, such as < for <=, a constant plus one, a negated condition, a removed statement, two swapped
// arguments, another variable of the same type, or a check of an error that is missing.
//
// The changes of a tree form one list, in an order that depends on nothing but the State and the Config: likely places
// first, and among them likely mistakes. Places are likely if a test that fails covers them, or if its output names their
// file and line, their function or their package. A change that the type checker refuses is left out, as far as it can
// tell without the imported packages.
//
// The position in the list is found again from the history, so a run can be resumed from its state alone.
//
// # What it does not do
//
// It knows nothing of meaning: a variant that passes is not thereby right, and where tests are weak it will find a way
// around them. It does not combine changes, and it does not invent expressions that are not in the file.
package repair
