// SPDX-License-Identifier: Apache-2.0

// Package runaway decides whether a loop that changes its own code may have another iteration. A crash, a restart, a
// race or a clever loop does not reset what it counts.
//
//	store, err := runaway.FileStore("/var/lib/loop/runs")
//	g, err := runaway.Open(ctx, "run-7", runaway.Limits{MaxIterations: 50}, store, nil)
//	for it, err := range g.Iterations(ctx, runaway.Estimate{}) {
//		if err != nil {
//			return err // *StopError: the run is over, and says why
//		}
//		… generate; it.Seen(variant), it.Check(ctx), it.Spend(usage) …
//		it.End(runaway.Outcome{Kind: runaway.Accepted, Head: head})
//	}
//	err = g.Close(ctx)
//
// # Rules
//
// An iteration is on the disk before Begin returns, and it counts from then on, whatever becomes of the process. All
// counts belong to the run id: another call, another governor or a restart grants nothing. What a crash left open has
// failed.
//
// Every outcome is classified. A value that nobody set, a panic, runtime.Goexit, a body without End and an iteration
// that took too long are failures. Only the acceptance of something new ends a row of failures.
//
// What may be spent is reserved first and settled later, under one lock, so that no number of goroutines passes a
// budget together. An iteration that reports nothing is charged what it reserved. Children made with
// [Iteration.Child] spend from the same budgets and count against the same cap, in the same journal.
//
// Zero is the strictest: a default for iterations and times, nothing at all for a budget. [NoLimit] spells out the
// absence of a limit where that is possible; it is not for iterations and for failures in a row. A limit that nothing
// reports on is refused by Open, since it would never fire.
//
// A stop is latched: the first reason stands, in the order of the [Reason] constants if several hold at the same
// moment, and of governors from the run inward. A stop that drains lets open iterations finish: the cap, the
// detectors, a reservation that no longer fits. All others end the contexts of [Iteration.Bind], with the
// [*StopError] as their cause. Lifting a stop or raising a limit takes an [Amendment] with a name and a reason, which
// is recorded and serves once.
//
// A kill file and a pause file are looked at in every call and once a second, and so is whether their directories are
// the same as at Open, but for Spend and End, which look at the files alone. Whatever else than "it does not exist"
// comes of looking stops the run. The journal, these files and their directories belong outside of what variants can
// change.
//
// # Time
//
// Wall, Idle and RateWindow count active time: the monotonic clock while the run is open, not while it waits in a
// pause. A session that was not closed is charged up to 61 s for what it could not record. Deadline is of the wall
// clock; Linux stops the monotonic clock while a machine is suspended, so both are of use.
//
// # The journal
//
// FileStore keeps one JSON object a line, each with a checksum and the hash of the line before. A Begin, a stop, an
// amendment and whatever was spent beyond a reservation is synced before the call returns, the rest with the next of
// these or within a second or two. An unfinished record at the end is cut off and counts as a failed iteration, if it
// can have been one. Any other damage is [ErrStateCorrupt], and a journal that has vanished is damage; it is never
// made anew. To read it: `jq -c .data run-7.journal`. Status.Head, kept elsewhere, shows whether an older copy was
// put back.
//
// # Errors
//
// [*StopError] matches [ErrStopped]: a result, not a failure to try again. [*ConfigError] matches [ErrConfig] and
// lists everything that is wrong with the arguments. [*LeakError] names what was open at Close. [ErrLost]: an
// iteration that is not open. [ErrPaused]: the context ended in a pause. [ErrStateCorrupt], [ErrStateLocked],
// [ErrNoState], [ErrLimitsLoosened], [ErrUnapproved], [ErrInvalidUsage], [ErrNoFingerprint] and [ErrClosed] are what
// they say.
//
// # What it does not do
//
// It cannot stop a goroutine or a process: it ends contexts, and the executor kills. It cannot meter what the host
// does not report. It does not protect its files from a process with the host's own uid, or from root, nor a deleted
// directory from being taken for one in which nothing ever ran: Options.MustExist, for every start but the first,
// does. It does not decide whether a variant is good; scores and heads are the host's. It is no rate limiter: MaxRate
// stops a run, it does not slow it down. It does not work on network file systems, and FileStore only where there is
// flock(2).
package runaway
