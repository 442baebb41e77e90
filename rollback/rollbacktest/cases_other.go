// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rollbacktest

import "testing"

func cases() []Case                  { return nil }
func processCases(*testing.T) []Case { return nil }
func rootCases(*testing.T) []Case    { return nil }
func working(*testing.T, Open) bool  { return false }
