// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// maxTries bounds how often a file, a directory or a tree is looked at before it counts as unstable.
const maxTries = 3

// errStale: an entry is not what its directory's listing said; the directory has to be listed again.
var errStale = errors.New("the directory changed")

// Scan captures the tree below the directory root, a descriptor that stays the caller's. The error is an [*Error] if
// the tree is to blame, and the cause of ctx if that is done; a result without an error is complete.
//
// A tree whose directories change while it is walked is walked again, with what is known already, at most twice.
func Scan(ctx context.Context, root int, o Options) (*Result, error) {
	if o.Workers <= 0 {
		o.Workers = min(8, runtime.GOMAXPROCS(0))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.clock == nil {
		o.clock = kernelClock{}
	}
	for try := 1; ; try++ {
		s, err := newScanner(ctx, root, &o, try == maxTries)
		if err != nil {
			return nil, err
		}
		r, err := s.run(ctx)
		if err != nil || !s.stale.Load() {
			return r, err
		}
		o.Logger.Debug("rollback: the tree changed while it was walked, again", "try", try)
		if data, whole := r.CacheFile(); whole && o.prev == nil {
			o.Cache = ParseCache(data)
		}
	}
}

// scanner is one walk.
type scanner struct {
	o         *Options
	root      int
	dev       uint64
	cache     *Cache
	trust     trust
	timing    timing
	settled   trust // of an earlier result that is taken over
	start     stamp
	timed     bool // start is known
	assured   bool // everything that the cache names is present
	turn      uint64
	last      bool // what is stale now is unstable
	pool      *pool
	faults    faults
	stale     atomic.Bool
	stopped   atomic.Bool
	big       chan []byte // buffers for files that no worker keeps a buffer for
	noXattrs  atomic.Bool // the file system has none
	failed    atomic.Bool // something is wrong already: bytes need not be read any more
	rewritten atomic.Bool // the cache lacks something that this walk knows

	entries, bytes            atomic.Int64
	read, readBytes, scrubbed atomic.Int64
	foreignCount              atomic.Int64
	mu                        sync.Mutex
	foreign                   []Foreign
	drifted                   []string
	chunks                    map[*Node][]byte
	linked                    []*Node // files with several names
}

func newScanner(ctx context.Context, root int, o *Options, last bool) (*scanner, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var st unix.Statx_t
	if err := fstat(root, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: ".", Err: err}
	}
	s := &scanner{
		o: o, root: root, dev: device(&st), last: last, chunks: map[*Node][]byte{}, big: make(chan []byte, bigBuffers),
	}
	for range bigBuffers {
		s.big <- nil
	}
	s.start, s.timed = o.clock.now(root)
	s.timing = o.clock.timing(root)
	if c := o.Cache; c.usable(fingerprint(o, s.dev, st.Ino), s.start, s.timed) {
		s.cache, s.turn, s.trust = c, c.turn, trusted(c, s.timing)
		now := generation(o.Sink)
		s.assured = o.Sink == nil || now == c.generation && now != object.Hash{}
	}
	top := &Node{}
	top.set(&st, o.Owner)
	if s.cache != nil {
		top.cached = headerLen
	}
	if o.prev != nil {
		top.prev = o.prev.Root
		s.settled = o.prev.settled(s.timing)
	}
	s.pool = newPool(top)
	return s, nil
}

// run walks the tree and sums it up.
func (s *scanner) run(ctx context.Context) (*Result, error) {
	top := s.pool.dirs[0]
	defer context.AfterFunc(ctx, s.stop)()
	var workers sync.WaitGroup
	found := make([]*worker, s.o.Workers)
	for i := range found {
		w := &worker{scanner: s, least: smallFile}
		found[i] = w
		workers.Go(w.loop)
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &Result{Root: top, Dev: s.dev}
	for _, w := range found {
		s.foreign = append(s.foreign, w.foreign...)
		s.linked = append(s.linked, w.linked...)
		if w.staging != nil {
			r.Staging = w.staging
		}
	}
	r.Foreign, r.Drifted = s.foreign, s.drifted
	s.group()
	if err := s.faults.err(); err != nil {
		return nil, err
	}
	if err := s.sumUp(r); err != nil {
		return nil, err
	}
	slices.SortFunc(r.Foreign, byPath)
	slices.Sort(r.Drifted)
	r.Read, r.ReadBytes, r.Scrubbed = int(s.read.Load()), s.readBytes.Load(), int(s.scrubbed.Load())
	s.keepCache(r)
	return r, nil
}

// keepCache prepares the next cache. If the clock went backwards during the walk, or there is none, there is no time
// before which files can be called old.
func (s *scanner) keepCache(r *Result) {
	if s.cache != nil && !s.rewritten.Load() {
		r.cache = &cacheState{
			start: s.cache.start, turn: s.turn + 1, old: s.cache.data[:headerLen], sink: s.o.Sink, chunks: s.chunks,
		}
		return
	}
	end, ok := s.o.clock.now(s.root)
	if !s.timed || !ok || end.before(s.start) {
		return
	}
	r.cache = &cacheState{
		fingerprint: fingerprint(s.o, s.dev, r.Root.Stat.Ino), start: s.start, turn: s.turn + 1, chunks: s.chunks,
		sink: s.o.Sink,
	}
}

func (s *scanner) stop() {
	s.stopped.Store(true)
	s.pool.stop()
}

// fail notes what is wrong with an entry. The walk goes on, to find what else is.
func (s *scanner) fail(n *Node, op string, err error) {
	s.failed.Store(true)
	add(&s.faults, &s.faults.other, error(&fs.PathError{Op: op, Path: n.Path(), Err: err}))
}

// moved says that a directory is not what it was when it was listed. Unless this is the last try, the tree is walked
// again.
func (s *scanner) moved(n *Node) {
	if !s.last {
		s.stale.Store(true)
		return
	}
	s.failed.Store(true)
	add(&s.faults, &s.faults.unstable, n.Path())
}

// limit notes that a bound is exceeded and ends the walk: what else is wrong does not matter then.
func (s *scanner) limit(path, field string, value, bound int64) {
	s.failed.Store(true)
	add(&s.faults, &s.faults.other, error(&LimitError{path, field, value, bound}))
	s.stop()
}

// open opens what is below a directory, and nothing else.
func open(dir int, path string, flags uint64) (int, error) {
	return fsys.OpenBeneath(dir, path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
