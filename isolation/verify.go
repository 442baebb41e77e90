// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/evoseal/containment/executor"
)

// SuiteVersion names the set of attacks that [Verify] makes and how it chooses among them.
const SuiteVersion = "executortest/v2"

// VerifyOptions say what is to be proven. Nil and the zero value prove every claim of the executor.
type VerifyOptions struct {
	// Needs are the capabilities that must be proven, such as those of [Tier.Needs]. 0: all that the executor claims.
	Needs executor.Capability
	// Full makes every attack of each needed capability instead of the decisive ones: a minute instead of seconds.
	Full bool
	// Timeout bounds the whole verification: what has no verdict by then denies. It is for machines that are slow; an
	// executor that hangs is found out much earlier. Default: 30 s, or 5 min if Full; more than 15 min is cut to that.
	Timeout time.Duration
	// Fresh makes the attacks again even if this process has a valid report about this very executor.
	Fresh bool
	// Logger gets the result of each probe (debug) and of the verification. Nil discards.
	Logger *slog.Logger

	patience time.Duration // with a run, if it is less than usual; 0: the usual
}

// patient returns how long a run is waited for that usually has this time.
func (v *VerifyOptions) patient(usual time.Duration) time.Duration {
	if v.patience > 0 {
		return min(v.patience, usual)
	}
	return usual
}

const (
	quickTimeout = 30 * time.Second
	fullTimeout  = 5 * time.Minute
	maxTimeout   = 15 * time.Minute
	// ReportTTL is how long a verification holds.
	ReportTTL = 24 * time.Hour
)

func (o *VerifyOptions) withDefaults() VerifyOptions {
	var v VerifyOptions
	if o != nil {
		v = *o
	}
	if v.Timeout <= 0 {
		v.Timeout = quickTimeout
		if v.Full {
			v.Timeout = fullTimeout
		}
	}
	v.Timeout = min(v.Timeout, maxTimeout)
	if v.Logger == nil {
		v.Logger = slog.New(slog.DiscardHandler)
	}
	return v
}

// Verify attacks an executor on this host and reports what it holds. The error is nil if and only if everything that
// is needed is both claimed and proven; otherwise it is a [*VerifyError], and the report says how far the attacks came.
//
// Each attack is a case of package executortest. It is first made where nothing holds it, and must succeed there; then
// under the executor, where the host sees whether it had an effect. No verdict, an error, a panic, a run that does not
// return and a claim that changes meanwhile all deny.
//
// A run that does not end within seconds, as all of the decisive ones do, ends the verification: a hanging executor is
// refused within 10 s. A probe without a verdict is made once more, and one that broke is not, but for
// one that was only late: a busy machine is late once, an executor three times in a row.
//
// A success is remembered for this process, this executor, its fingerprint, this boot and this uid, for [ReportTTL];
// see [VerifyOptions.Fresh]. An executor without a fingerprint is attacked each time.
//
// While it runs, Verify adds variables with random names to the environment of the process and opens descriptors that
// children inherit: what else the program starts meanwhile sees random values, and nothing secret. Verifications of one
// process take turns.
func Verify(ctx context.Context, ex executor.Executor, o *VerifyOptions) (Report, error) {
	v := &verification{options: o.withDefaults(), started: time.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, v.options.Timeout, ErrTimeout)
	defer cancel()
	if err := v.identify(ctx, ex); err != nil {
		return v.refuse(ctx, err)
	}
	if r, ok := v.recall(); ok {
		v.options.Logger.DebugContext(ctx, "verification remembered", slog.Any("report", r))
		return r, nil
	}
	if err := v.attack(ctx); err != nil {
		return v.refuse(ctx, err)
	}
	return v.conclude(ctx)
}

// verification is one call of Verify.
type verification struct {
	options VerifyOptions
	started time.Time
	guard   *guard
	report  Report
}

// identify finds out who is to be attacked and where, and refuses what no attack can prove.
func (v *verification) identify(ctx context.Context, ex executor.Executor) error {
	v.report = Report{
		Executor: typeName(ex), Needs: v.options.Needs, Full: v.options.Full, Library: libraryVersion(), Suite: SuiteVersion,
		Nonce: rand.Text(), Started: moment(v.started),
	}
	var err error
	if v.report.Host, err = hostFacts(); err != nil {
		return err
	}
	if v.guard, err = newGuard(ctx, ex); err != nil {
		return err
	}
	v.report.Claimed, v.report.Fingerprint = v.guard.claimed, v.guard.fingerprint
	if v.report.Needs == 0 {
		v.report.Needs = v.report.Claimed
	}
	switch {
	case v.report.Needs == 0:
		return errNoClaim
	case (v.report.Needs|v.report.Claimed)&^executor.AllCapabilities != 0:
		return errUndefined
	case v.report.Claimed.Missing(v.report.Needs) != 0:
		return errUnclaimed
	}
	return nil
}

// conclude adds up what was proven. The executor must still be the one that was attacked.
func (v *verification) conclude(ctx context.Context) (Report, error) {
	if err := v.guard.unchanged(ctx); err != nil {
		return v.refuse(ctx, err)
	}
	v.report.Proven = proven(v.report.Probes, v.report.Needs)
	if v.report.Missing() != 0 {
		return v.refuse(ctx, nil)
	}
	v.finish()
	v.remember()
	v.options.Logger.InfoContext(ctx, "executor verified", slog.Any("report", v.report))
	return v.report, nil
}

// finish stamps the report.
func (v *verification) finish() {
	v.report.Finished = moment(time.Now())
	v.report.Expires = v.report.Finished.Add(ReportTTL)
	v.report.Enforced, _ = v.guard.noted()
}

// refuse ends a verification that proves too little. cause is nil if the probes say all.
func (v *verification) refuse(ctx context.Context, cause error) (Report, error) {
	if cause != nil {
		v.report.Proven = 0 // what cannot be told to the end is not told in part
	}
	v.finish()
	v.report.Expires = v.report.Finished
	err := v.report.refusal(cause)
	if _, absent := v.guard.noted(); absent && errors.Is(cause, errNoStart) && needsLoader() {
		err.Fix = "this program is dynamically linked, and it is its own attack: build it with CGO_ENABLED=0, or let the " +
			"executor show it the libraries"
	}
	v.options.Logger.WarnContext(ctx, "executor not verified", slog.Any("report", v.report), slog.Any("error", err))
	return v.report, err
}
