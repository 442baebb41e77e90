// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package rlimit_test

const race = false
