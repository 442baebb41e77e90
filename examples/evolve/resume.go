// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoseal/containment/runaway"
)

// liftable are the stops that -resume takes back: each is the end of what was asked for, or somebody's wish, and the
// call is that of an operator who wants otherwise. A sandbox that did not hold or a journal that failed is not among
// them.
var liftable = []runaway.Reason{
	runaway.ReasonKillFile, runaway.ReasonOperator, runaway.ReasonCompleted, runaway.ReasonIterations,
	runaway.ReasonCalls, runaway.ReasonTokens, runaway.ReasonWall, runaway.ReasonIdle,
}

// raise opens a run again that has stopped or whose limits were lower. Who did it and why is recorded.
func raise(
	ctx context.Context, o *options, l layout, limits runaway.Limits, options runaway.Options, refused error,
) (*runaway.Governor, error) {
	now := time.Now().UTC().Format(time.RFC3339Nano) // an amendment serves once
	amendment := &runaway.Amendment{By: operator(), Reason: fmt.Sprintf("-resume -max %d at %s", o.Max, now)}
	var stop *runaway.StopError
	switch {
	case errors.As(refused, &stop) && slices.Contains(liftable, stop.Reason):
		if stop.Reason == runaway.ReasonCompleted && !o.given["max"] {
			return nil, fmt.Errorf("%w; -max raises the number of variants", refused)
		}
		amendment.Lift = stop.Reason
	case errors.Is(refused, runaway.ErrLimitsLoosened):
	default:
		return nil, refused
	}
	records, err := runaway.FileStore(l.governor())
	if err != nil {
		return nil, err
	}
	options.Amendment = amendment
	return runaway.Open(ctx, runID, limits, records, &options)
}
