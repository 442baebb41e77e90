// SPDX-License-Identifier: Apache-2.0

// Package capture reads what an untrusted process writes, and feeds what it reads, without ever being held up or filled
// up by it.
//
// [Start] drains the read end of a pipe until its end: it keeps the beginning and the end of the stream in constant
// memory, counts everything, says once when a limit was passed, and copies the stream to a writer of the caller if there
// is one. [Stream.Finish] collects the result within a bounded time whatever the other side does. [Feed] is the
// opposite direction: it copies a reader of the caller into the write end of a pipe.
//
//	r, w, err := os.Pipe()
//	…
//	s := capture.Start(r, capture.Options{Keep: 64 << 10, Limit: 16 << 20, OnLimit: kill})
//	… start the process with w, close w, wait for the process, kill its tree …
//	result := s.Finish(200 * time.Millisecond)
//
// [Push] is for a stream that somebody else has read, out of something that is more than one stream.
//
// Everything is bytes: nothing is decoded, split into lines or repaired.
//
// # Errors
//
// A stream whose end was not seen is [Result.Incomplete]. A live copy that was cut off is reported in [Result.LiveErr];
// it matches [ErrLiveSlow] if the writer did not keep up, and wraps the writer's own error if that is the reason.
//
// # What it does not do
//
// It kills nobody: OnLimit tells the caller to. It cannot interrupt a Read or Write of the caller's own that blocks: that
// one goroutine ends when the call returns, and nothing waits for it. It keeps no order between two streams.
package capture
