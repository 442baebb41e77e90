// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package bubblewrap_test

const race = false
