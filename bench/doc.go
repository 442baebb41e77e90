// SPDX-License-Identifier: Apache-2.0

// Package bench holds no code of its own. The directories below it measure the packages of this module beside programs
// and libraries of the same kind, in one run and in turns, so that what else the machine does falls on all alike:
//
//	go run ./bench/executor
//	go run ./bench/rollback -files 1000,10000 -rounds 5
//	go test ./bench/runaway -bench . -benchmem
//
// It is a module of its own so that nobody who uses the library gets what it is compared with.
package bench
