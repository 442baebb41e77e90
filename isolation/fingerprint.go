// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evoseal/containment/executor"
)

const modulePath = "github.com/evoseal/containment"

// typeName is what a person needs to find the implementation.
func typeName(ex executor.Executor) string { return fmt.Sprintf("%T", ex) }

// maxFingerprint is the length of a text from which on its digest takes its place.
const maxFingerprint = 4 << 10

// fingerprintOf returns "" for an executor that cannot tell.
func fingerprintOf(ex executor.Executor) string {
	f, ok := ex.(executor.Fingerprinter)
	if !ok {
		return ""
	}
	text := f.Fingerprint()
	if sum := sha256.Sum256([]byte(text)); len(text) > maxFingerprint || !utf8.ValidString(text) {
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return text
}

// hostFacts fails where a fact is missing that a verification depends on: what cannot be compared cannot be trusted to
// be the same.
func hostFacts() (HostFacts, error) {
	f := HostFacts{System: runtime.GOOS + "/" + runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
	if name, err := os.Hostname(); err == nil {
		sum := sha256.Sum256([]byte(name))
		f.NameHash = hex.EncodeToString(sum[:])
	}
	var err error
	if f.Kernel, f.BootID, err = kernelFacts(); err != nil {
		return f, fmt.Errorf("isolation: facts about the host: %w", err)
	}
	return f, nil
}

// libraryVersion is what the linker recorded: a version and its sum for a program that depends on this module, a
// revision for one that was built in its tree.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != modulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		version := m.Version + " " + m.Sum
		for _, s := range info.Settings {
			if m == &info.Main && (s.Key == "vcs.revision" || s.Key == "vcs.modified") {
				version += " " + s.Key + "=" + s.Value
			}
		}
		return strings.TrimSpace(version)
	}
	return "unknown"
}

// moment is a time as a record can hold it: in UTC, to the millisecond, without the process's own clock.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Current returns nil if the report still holds for this executor at this time: what was needed was proven, and the
// executor, its fingerprint and claims, the host, its boot and the caller are the same. Otherwise the error matches
// [ErrStale] or says what the executor did, and the executor must be verified again. It takes less than a millisecond
// unless the executor is slow to answer, and is to be asked before each run.
func (r Report) Current(ctx context.Context, ex executor.Executor, now time.Time) error {
	stale := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrStale}, args...)...)
	}
	host, err := hostFacts()
	if err != nil {
		return stale("%w", err)
	}
	g, err := newGuard(ctx, ex)
	if err != nil {
		return stale("%w", err)
	}
	switch {
	case r.Needs == 0 || r.Missing() != 0:
		return stale("it did not prove %v", r.Missing())
	case now.Before(r.Started) || !now.Before(r.Expires):
		return stale("it holds from %v to %v", r.Started, r.Expires)
	case host != r.Host:
		return stale("the host is %+v, and was %+v", host, r.Host)
	case typeName(ex) != r.Executor || g.fingerprint != r.Fingerprint || g.claimed != r.Claimed:
		return stale("%w: it is %s, claims %v and has the fingerprint %q; verified was %s, %v, %q", ErrUnsteady, typeName(ex),
			g.claimed, g.fingerprint, r.Executor, r.Claimed, r.Fingerprint)
	}
	return nil
}
