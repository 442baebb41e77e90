// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/pack"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// captureOptions say how a tree is read. A restore reads it as the checkpoint was read, not by today's options.
type captureOptions struct {
	Exclude  []string
	Owner    bool
	Xattrs   bool
	Safety   bool // nothing that can be read is refused: set-id and special files least of all
	Dry      bool // nothing is stored
	Tolerate bool // of a safety capture: what cannot be captured is listed, to be moved out of the way
}

// capture is a tree that was read and of which no checkpoint exists yet.
type capture struct {
	s       *Store
	target  *target
	options captureOptions
	writer  *pack.Writer // nil: dry
	result  *scan.Result
}

// capture reads a tree, with the cache of the last time.
func (s *Store) capture(ctx context.Context, t *target, o captureOptions) (*capture, error) {
	c := &capture{s: s, target: t, options: o}
	so, err := s.scanOptions(o)
	if err != nil {
		return nil, err
	}
	so.Cache = s.loadCache(t)
	if !o.Dry {
		c.writer = s.newWriter()
		so.Sink = sink{s.packs, c.writer}
	}
	c.result, err = scan.Scan(ctx, t.fd, so)
	if err == nil && !o.Tolerate { // otherwise the plan moves it out of the way
		err = s.checkStaging(t, c.result.Staging)
	}
	if err != nil {
		c.abort()
		return nil, s.scanError(t, err)
	}
	if n := len(c.result.Drifted); n > 0 {
		s.log.Warn("rollback: files changed without a change of their times",
			"tree", t.path, "files", quoted(c.result.Drifted))
	}
	return c, nil
}

// rescan reads a tree again of which prev knows all but the touched directories; nil: it is read whole.
func (s *Store) rescan(
	ctx context.Context, t *target, o captureOptions, prev *scan.Result, touched map[string]bool,
) (*scan.Result, error) {
	so, err := s.scanOptions(o)
	if err != nil {
		return nil, err
	}
	r, err := scan.Rescan(ctx, t.fd, prev, func(path string) bool { return touched[path] }, so)
	if err != nil {
		return nil, s.scanError(t, err)
	}
	return r, nil
}

func (s *Store) scanOptions(o captureOptions) (scan.Options, error) {
	exclude, err := scan.NewMatcher(o.Exclude)
	if err != nil {
		return scan.Options{}, fmt.Errorf("rollback: Options.Exclude: %w", err)
	}
	l := s.options.Limits
	return scan.Options{
		Exclude: exclude,
		Limits:  scan.Limits{Files: l.Files, Bytes: l.Bytes, FileSize: l.FileSize, Depth: l.Depth},
		Owner:   o.Owner, Xattrs: o.Xattrs,
		RefuseSetID: !o.Safety && !s.options.Privileged,
		SkipSpecial: o.Safety || s.options.Special == SpecialSkip,
		Tolerate:    o.Tolerate,
		Workers:     s.options.Workers, Scrub: s.options.Scrub, Logger: s.log,
	}, nil
}

// sink stores what the packs do not have.
type sink struct {
	*pack.Set
	w *pack.Writer
}

func (s sink) Add(t object.Type, raw []byte) (object.Key, error) { return s.w.Add(t, raw) }

// checkStaging refuses a tree in which another store has begun a restore: what that store does when it goes on would
// meet a tree that it does not expect.
func (s *Store) checkStaging(t *target, names []string) error {
	for _, name := range names {
		if tag, _, _, ok := parseStaging(name); ok && tag != stagingTag(s.id, t.key) {
			return fmt.Errorf("%w: %q is of another store; call Recover there", ErrPending, name)
		}
	}
	return nil
}

// seal makes a checkpoint of what was captured: first the objects, then the manifest, each durably; last the cache.
func (c *capture) seal(ctx context.Context, m Meta, k Kind) (Checkpoint, error) {
	s, r := c.s, c.result
	s.step("checkpoint/scanned")
	skipped, err := c.skipped()
	if err != nil {
		return Checkpoint{}, err
	}
	added, err := c.writer.Seal(ctx)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
	}
	s.step("checkpoint/packed")
	out, err := s.seal(ctx, manifest{
		Kind: k, TreeKey: c.target.key, Tree: c.target.path, Root: r.Root.Entry, Exclude: c.options.Exclude,
		Limits: s.options.Limits, Owner: c.options.Owner, Xattrs: c.options.Xattrs, Meta: m,
		Files: r.Files, Dirs: r.Dirs, Links: r.Links, Bytes: r.Bytes, Added: added, Skipped: skipped,
	})
	if err != nil {
		return Checkpoint{}, err
	}
	s.step("checkpoint/sealed")
	if k == Safety {
		return out, nil // the restore writes the cache when it has ended; until then the old one costs some reading at most
	}
	if err := s.saveCache(c.target, r); err != nil {
		s.log.Warn("rollback: the cache was not written", "tree", c.target.path, "error", err)
	}
	return out, nil
}

// skipped stores the list of what is in the tree and in no checkpoint though no pattern says so.
func (c *capture) skipped() (object.Hash, error) {
	var list []object.Omission
	for _, f := range c.result.Foreign {
		if f.Why != scan.Git && f.Why != scan.Excluded {
			list = append(list, object.Omission{Path: f.Path, Why: whyOf(f)})
		}
	}
	if len(list) == 0 {
		return object.Hash{}, nil
	}
	key, err := c.writer.Add(object.Skipped, object.EncodeSkipped(list))
	if err != nil {
		return object.Hash{}, fmt.Errorf("rollback: %s: %w", c.s.path, c.s.noSpace(err))
	}
	return key.Hash, nil
}

// abort drops what was stored; after seal it does nothing.
func (c *capture) abort() {
	if c.writer != nil {
		c.writer.Abort()
	}
}
