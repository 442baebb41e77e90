// SPDX-License-Identifier: Apache-2.0

//go:build race

package isolation_test

const race = true
