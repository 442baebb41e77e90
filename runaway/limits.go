// SPDX-License-Identifier: Apache-2.0

package runaway

import "time"

// NoLimit is how a limit is switched off where that is possible. There is none for iterations and for failures in a
// row.
const NoLimit = -1

// What a zero field of Limits stands for.
const (
	DefaultMaxIterations          = 1000 // EVOSEAL's cap
	DefaultMaxConsecutiveFailures = 5    // EVOSEAL's stuck-generator threshold
	DefaultFailureWindow          = 50
	DefaultMaxSameClass           = 10
	DefaultMaxDuplicates          = 100
	DefaultMaxCycle               = 5
	DefaultNoImprovement          = 100
	DefaultMaxNeutral             = 10
	DefaultMaxConcurrent          = 1
	DefaultMaxDepth               = 2
	DefaultRateWindow             = time.Hour
	DefaultPerIteration           = time.Hour
	DefaultWall                   = 24 * time.Hour
	DefaultIdle                   = time.Hour
)

// Limits bound a run, over its whole life: a restart grants nothing. They are data, comparable with == and recorded in
// the journal. Zero is a default, or none allowed; NoLimit is accepted where the comment says so.
type Limits struct {
	// Iterations is what the host asks for, at most MaxIterations; 0: MaxIterations. Reaching it is ReasonCompleted.
	Iterations int `json:"iterations"`
	// MaxIterations is the hard cap on iterations that begin, those of child governors included; 0: 1000.
	MaxIterations int `json:"max_iterations"`
	// MaxConsecutiveFailures stops a generator that is stuck: so many failures in a row; 0: 5.
	MaxConsecutiveFailures int `json:"max_consecutive_failures"`
	// FailureWindow is how many of the last iterations MaxFailures looks at; 0: 50, at most 10000. Neutral ones are
	// left out.
	FailureWindow int `json:"failure_window"`
	// MaxFailures stops on so many failures among them; 0: nine tenths of FailureWindow, rounded up. NoLimit is
	// possible.
	MaxFailures int `json:"max_failures"`
	// MaxSameClass stops on so many failures of one Outcome.Class with no other class in between; 0: 10. NoLimit is
	// possible.
	MaxSameClass int `json:"max_same_class"`
	// MaxDuplicates stops on so many iterations that ended as Duplicate; 0: 100. NoLimit is possible.
	MaxDuplicates int `json:"max_duplicates"`
	// MaxCycle is the longest period that is looked for among accepted heads; 0: 5. From 2 to 100.
	MaxCycle int `json:"max_cycle"`
	// NoImprovement stops on so many iterations without a better score; 0: 100. NoLimit is possible.
	NoImprovement int `json:"no_improvement"`
	// MinDelta is the smallest growth of the score that counts as better; 0: any.
	MinDelta float64 `json:"min_delta"`
	// MaxNeutral stops on so many neutral outcomes in a row; 0: 10.
	MaxNeutral int `json:"max_neutral"`

	// Budget is what the run may spend. A zero field allows none of that kind. NoLimit is possible in each.
	Budget Usage `json:"budget"`
	// MaxRate is what the run may spend within RateWindow; a zero field: Budget's. NoLimit is possible in each.
	MaxRate Usage `json:"max_rate"`
	// RateWindow is active time, like Wall, and exact to a sixtieth of itself, by which it may be longer; 0: 1 h.
	RateWindow time.Duration `json:"rate_window"`

	// PerIteration is the ceiling for all that is done in one iteration, time in a pause excepted; 0: 1 h.
	PerIteration time.Duration `json:"per_iteration"`
	// Wall is active time by the monotonic clock: while the run is open and not waiting in a pause; 0: 24 h. NoLimit is
	// possible. Linux stops that clock while the machine is suspended.
	Wall time.Duration `json:"wall"`
	// Idle is the longest active time in which nothing is asked of the governor; 0: the larger of 1 h and PerIteration.
	// NoLimit is possible.
	Idle time.Duration `json:"idle"`
	// Deadline is a time of the wall clock; zero: only Wall applies.
	Deadline time.Time `json:"deadline"`

	// MaxConcurrent is how many iterations may be open at once; 0: 1. Begin waits for the others.
	MaxConcurrent int `json:"max_concurrent"`
	// MaxDepth is how many levels of child governors there may be; 0: 2. That of the run counts; a child's is ignored
	// unless it is smaller.
	MaxDepth int `json:"max_depth"`
}

// withDefaults fills in what zero fields stand for.
func (l Limits) withDefaults() Limits {
	set(&l.MaxIterations, DefaultMaxIterations)
	set(&l.Iterations, l.MaxIterations)
	set(&l.MaxConsecutiveFailures, DefaultMaxConsecutiveFailures)
	set(&l.FailureWindow, DefaultFailureWindow)
	set(&l.MaxFailures, (9*l.FailureWindow+9)/10)
	set(&l.MaxSameClass, DefaultMaxSameClass)
	set(&l.MaxDuplicates, DefaultMaxDuplicates)
	set(&l.MaxCycle, DefaultMaxCycle)
	set(&l.NoImprovement, DefaultNoImprovement)
	set(&l.MaxNeutral, DefaultMaxNeutral)
	set(&l.MaxRate.Tokens, l.Budget.Tokens)
	set(&l.MaxRate.Cost, l.Budget.Cost)
	set(&l.MaxRate.Calls, l.Budget.Calls)
	set(&l.MaxRate.CPU, l.Budget.CPU)
	set(&l.RateWindow, DefaultRateWindow)
	set(&l.PerIteration, DefaultPerIteration)
	set(&l.Wall, DefaultWall)
	set(&l.Idle, max(DefaultIdle, l.PerIteration))
	set(&l.MaxConcurrent, DefaultMaxConcurrent)
	set(&l.MaxDepth, DefaultMaxDepth)
	// Without its monotonic reading and zone, the same moment is the same value after a restart.
	l.Deadline = l.Deadline.Round(0).UTC()
	return l
}

func set[T comparable](field *T, value T) {
	if zero := *new(T); *field == zero {
		*field = value
	}
}

// cap is how many iterations may begin.
func (l *Limits) cap() int { return min(l.Iterations, l.MaxIterations) }
