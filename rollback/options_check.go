// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"

	"github.com/evoseal/containment/rollback/internal/scan"
)

// withDefaults checks the options and fills in what is zero. The caller may change its own afterwards.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Exclude, c.Roots, c.Key = slices.Clone(c.Exclude), slices.Clone(c.Roots), slices.Clone(c.Key)
	if c.Exclude == nil {
		c.Exclude = DefaultExclude()
	}
	l := c.Limits
	negative := l.Files < 0 || l.Bytes < 0 || l.FileSize < 0 || l.Depth < 0 || c.Scrub < 0 || c.Workers < 0
	unknown := c.Sync > SyncProcess || c.Codec > CodecNone || c.MTime > MTimeTouch || c.Foreign > ForeignQuarantine ||
		c.Special > SpecialSkip
	switch {
	case negative:
		return c, fmt.Errorf("rollback: Options has a negative number; 0 gives the default: %w", fs.ErrInvalid)
	case unknown:
		return c, fmt.Errorf("rollback: Options has a value that is none of its constants: %w", fs.ErrInvalid)
	}
	if _, err := scan.NewMatcher(c.Exclude); err != nil {
		return c, fmt.Errorf("rollback: Options.Exclude: %w: %w", fs.ErrInvalid, err)
	}
	c.Limits = l.withDefaults()
	if c.Scrub == 0 {
		c.Scrub = 256
	}
	if c.Workers == 0 {
		c.Workers = min(8, runtime.GOMAXPROCS(0))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
