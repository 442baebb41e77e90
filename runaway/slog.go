// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"log/slog"
)

// SlogObserver writes each event as one record. Beginnings and ends are at level Debug, warnings, duplicates, pauses
// and what concerns limits at Warn, a stop at Error unless it is ReasonCompleted, the rest at Info.
func SlogObserver(l *slog.Logger) Observer { return slogObserver{l} }

type slogObserver struct{ logger *slog.Logger }

// Observe writes the event.
func (o slogObserver) Observe(ctx context.Context, e Event) {
	level := e.level()
	if o.logger == nil || !o.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("run", e.RunID)}
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	number := func(key string, value int64) {
		if value != 0 {
			attrs = append(attrs, slog.Int64(key, value))
		}
	}
	text("child", e.Scope)
	number("iteration", int64(e.Iteration))
	if e.Kind == EventEnd {
		text("outcome", e.Outcome.String())
	}
	if e.Reason != 0 {
		text("reason", e.Reason.String())
	}
	number("tokens", e.Usage.Tokens)
	number("cost_micro", int64(e.Usage.Cost))
	number("calls", e.Usage.Calls)
	if e.Usage.CPU != 0 {
		attrs = append(attrs, slog.Duration("cpu", e.Usage.CPU))
	}
	text("budget", e.Budget)
	number("percent", int64(e.Percent))
	if !e.Head.IsZero() {
		text("fingerprint", e.Head.String())
	}
	text("by", e.By)
	text("detail", e.Detail)
	o.logger.LogAttrs(ctx, level, "runaway: "+e.Kind.String(), attrs...)
}

func (e Event) level() slog.Level {
	switch e.Kind {
	case EventBegin, EventEnd:
		return slog.LevelDebug
	case EventWarn, EventDuplicate, EventPause, EventClamped, EventAmended, EventLeaked:
		return slog.LevelWarn
	case EventStop:
		if e.Reason != ReasonCompleted {
			return slog.LevelError
		}
	}
	return slog.LevelInfo
}
