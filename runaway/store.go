// SPDX-License-Identifier: Apache-2.0

package runaway

import "context"

// Store keeps the records of one run at a time. A governor calls it under its lock, so calls do not overlap, and it
// must not call back.
type Store interface {
	// Load claims the run for this store and calls apply for each record, in order, until it gives an error, which Load
	// returns. ErrNoState only if the run never existed: the first record that is appended then makes it. Otherwise
	// what cannot be read is ErrStateCorrupt, and what another governor has is ErrStateLocked; after such an error the
	// store has claimed nothing.
	Load(ctx context.Context, runID string, apply func(*Record) error) error
	// Append adds a record. If durable, it and everything before it survive a loss of power when Append returns;
	// otherwise they survive the death of the process. A write is never given up half-way, so there is no context.
	// After an error the governor stops the run. The record is the caller's: it is neither changed nor kept.
	Append(r *Record, durable bool) error
	// Close makes everything durable and gives the run back.
	Close() error
}

// Snapshotter is a Store that can shorten what it keeps.
type Snapshotter interface {
	Store
	// Snapshot puts one record in the place of all so far. After a crash on the way, Load finds either the old records
	// or the new one.
	Snapshot(r *Record) error
}

// Located is a Store that lives in a directory. The kill file is looked for there.
type Located interface {
	Store
	// Dir returns the directory, which need not exist before the first record.
	Dir() string
}

// Headed is a Store that can say where its journal stands, for an anchor elsewhere.
type Headed interface {
	Store
	Head() string
}
