// SPDX-License-Identifier: Apache-2.0

// Package examples holds no code of its own. Each directory below it is a program that shows one idea of the module
// github.com/evoseal/containment; run it from the top of a checkout with `go run ./examples/<name>`.
package examples
