// SPDX-License-Identifier: Apache-2.0

// Package isolation is the one path on which a variant of a program is written, run and kept: it decides which
// isolation a run needs, proves by attack that an executor holds it on this host, and then takes every variant through
// the same guarded step. It protects what goes through [Boundary.Try] and nothing else. A host that keeps an executor,
// a writable tree or a store for itself and uses them beside the Boundary is outside of it.
//
//	b, err := isolation.Open(ctx, isolation.Config{
//		Trust:     isolation.TrustModel{Generator: isolation.TrustedProvider, …},
//		Sources:   isolation.HostSources(home, os.Environ()), // and what writes the variants
//		Executors: []isolation.Candidate{{Name: "bubblewrap", Executor: bwrap, Err: err}},
//		Judge:     isolation.GoTest{},
//		…
//	})
//	defer b.Close(ctx)
//	for {
//		v, err := b.Try(ctx, isolation.Proposal{Generate: generator})
//		if err != nil {
//			return err // the run is over, or nothing holds any more
//		}
//		log.Print(v.Accepted, v.Reasons)
//	}
//
// # From a trust model to a tier
//
// [Decide] is a pure function of a [TrustModel]. Each of four triggers makes [TierContainer] mandatory: generation that
// is not trusted, a shared host, untrusted execution targets, and secrets that must survive a hostile variant. So does
// a fact that is unknown, and one that was seen to be riskier than declared. A riskier fact never asks for less, and a
// value that is not defined counts as unknown: the zero model asks for the most. [TierKernel] is advised and not
// required; Config.MinTier makes it a rule.
//
// [Observe] looks whether the model is true, in the places that [Sources] names, and [TrustModel.Merge] takes the
// riskier value. What was not looked at, and what could not be, is unknown.
//
// A trigger that fired stays latched for the run until an operator records a [Clear] with [ClearLatch]. A milder model,
// or a restart, does not end it.
//
// [Override] lowers the required tier of one run for a day at most, and [Approval] is a person's consent, without which
// some models do not run. Both are objects in files that the loop cannot write; see [LoadOverride] for the limits.
// There is no flag and no environment variable that does the same.
//
// # Proof
//
// A tier is a set of capabilities, not a product. [Verify] attacks an executor on this host, each attack beside a
// control that must succeed without it, and takes the verdict on the host. Only what is claimed and was found held
// counts; inconclusive is not held. If no candidate of the required tier is proven, [Open] refuses with a [*DenyError]
// that names what is missing for each. It never takes a lower tier.
//
// # Judges
//
// A variant is kept if the [Judge] says so, and a nil one is refused. [GoTest], [JUnit] and [TAP] read a report: the
// run must have exited by itself with 0, the tests that passed in the accepted tree must still be there, enough of them
// must pass, none may fail, and none be skipped anew. What the accepted tree passes is kept in the log, by name, or by
// number and hash if the names take more than 32 KiB: an [Open] that finds less, in each of three runs of the same bytes,
// is refused, since a variant wrote that tree, and only another run id begins lower. A variant runs once: one whose tests
// are flaky may be rejected by chance, and is never kept by asking again. A report that is missing, cut off, too large or at odds with itself, or
// has no tests, is never a pass. [ExitStatus] believes the exit status alone.
//
// # The decision log
//
// [Log] keeps what was believed, seen, decided, proven, allowed and done, one JSON object a line, chained by hashes:
// isolation-RUN.journal in Config.StateDir. [ReadLog] and [VerifyLog] read it without locking. A decision, the use of
// an override or an approval, and what recovery depends on are on the disk before anybody acts on them.
//
// # Errors
//
// [ErrDenied] (a [*DenyError]): no boundary, nothing has run. [ErrPermit] (a [*PermitError]): an override, approval or
// clear does not hold. [ErrConfig] and [ErrName]: what was given has no meaning. [ErrLog]: the decision log.
// [ErrTreeUnknown]: nobody can tell what is in the tree. [ErrUnproven] (a [*VerifyError]): an executor. [ErrBusy] and
// [ErrClosed]: the wrong moment. [ErrRejected] and [ErrNoResult] (a [*RejectError]): a judge. A variant that is not
// kept is a [*Verdict] and no error.
//
// # What it does not do
//
// It sandboxes nothing itself, and proves nothing about bugs of the kernel: evidence is about one executor on one host
// since one boot, and an executor that behaves only while it is attacked is not found out. It does not stop a variant
// from being wrong in a way that the judge accepts. In most test runners a variant and its tests share a process, so a
// hostile variant can write a report that is consistent and false; keep whatever scores variants outside of them. It
// does not protect against the host's own root: a loop that runs as root could write its own permits, which is why
// their use is recorded with that fact. Observe resolves no names, asks no service and does not see what a host leaves
// out of Sources; within a container it sees the container. The log shows an edit or a gap, and not that an older copy
// was put back as a whole: keep its head elsewhere for that. What lies in .git is not in a checkpoint: a generator that
// runs as the host's user, writes a hook there and kills the host in the same step leaves it behind, and no later Open
// finds it. Generate elsewhere, or look at .git after a crash before git is used in the tree.
package isolation
