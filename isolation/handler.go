// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"log/slog"
)

// calm is a handler that drops a record on which the host's own handler panics: what is logged must not end a step
// half-way.
type calm struct{ inner slog.Handler }

func (c calm) Enabled(ctx context.Context, level slog.Level) (yes bool) {
	defer func() { _ = recover() }()
	return c.inner.Enabled(ctx, level)
}

func (c calm) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() { _ = recover() }()
	return c.inner.Handle(ctx, r)
}

func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{c.inner.WithAttrs(attrs)} }

func (c calm) WithGroup(name string) slog.Handler { return calm{c.inner.WithGroup(name)} }
