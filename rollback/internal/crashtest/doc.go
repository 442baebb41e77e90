// SPDX-License-Identifier: Apache-2.0

// Package crashtest holds no code of its own, only tests: package rollback against SIGKILL at random moments and
// against power cuts. A cut is real as far as a file system can tell: it lies on a loop device, and FS_IOC_SHUTDOWN
// with NOLOGFLUSH throws away whatever was not yet on the device, log included.
//
//	go test ./rollback/internal/crashtest -v -crash.kills 1000 -crash.cuts 50
//
// After every crash the same is demanded: the tree is the last state that was reported as restored or the next one;
// every checkpoint that was reported exists and verifies; what no checkpoint holds is as it was; the next restore
// works. A last test shows that the harness notices a store that does not sync.
//
// # What it does not do
//
// It kills at no chosen step; the tests of package rollback do. A device that reorders or tears writes within what was
// flushed is not simulated.
package crashtest
