// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// walker records a tree with several workers. Each job opens its directory from the root, so no handle is held from
// one job to the next and a wide or deep tree needs few descriptors.
type walker struct {
	t  *Tree
	tp *treePolicy
	r  recording

	mu      sync.Mutex
	wake    sync.Cond
	jobs    []walkJob
	active  int
	workers int
	helpers sync.WaitGroup
	records map[string]record
	err     error
}

// walkJob is a directory, or a part of a large one.
type walkJob struct {
	path    string
	git     gitPlace
	entries []entry // nil: to be listed
}

// jobSize is the number of entries that one job handles.
const jobSize = 256

// maxWorkers: more do not help against one file system.
const maxWorkers = 8

func newWalker(t *Tree, tp *treePolicy, r recording) *walker {
	w := &walker{t: t, tp: tp, r: r, records: make(map[string]record, r.many), jobs: []walkJob{{}}}
	w.wake.L = &w.mu
	return w
}

func (w *walker) run() error {
	w.workers = 1
	w.work()
	w.helpers.Wait()
	return w.err
}

func (w *walker) work() {
	for {
		job, ok := w.next()
		if !ok {
			return
		}
		found, more, err := w.do(job)
		w.finish(found, more, err)
	}
}

// next waits for a job. There is none any more when the last active worker has brought none.
func (w *walker) next() (walkJob, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.jobs) == 0 && w.active > 0 && w.err == nil {
		w.wake.Wait()
	}
	if len(w.jobs) == 0 || w.err != nil {
		return walkJob{}, false
	}
	last := len(w.jobs) - 1
	job := w.jobs[last]
	w.jobs = w.jobs[:last]
	w.active++
	return job, true
}

func (w *walker) finish(found map[string]record, more []walkJob, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active--
	w.err = errors.Join(w.err, err)
	w.jobs = append(w.jobs, more...)
	for path, r := range found {
		w.records[path] = r
	}
	// A small tree is walked by the caller alone: waking others would cost more than the walk.
	if len(w.jobs) > 2 && w.workers < min(runtime.GOMAXPROCS(0), maxWorkers) {
		w.workers++
		w.helpers.Go(w.work)
	}
	w.wake.Broadcast()
}

func (w *walker) do(job walkJob) (found map[string]record, more []walkJob, err error) {
	d, err := w.t.openDir(job.path)
	if err != nil {
		return nil, nil, fmt.Errorf("%+q: %w", job.path, err)
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if job.entries == nil {
		entries, err := d.listOnce()
		if err != nil {
			return nil, nil, fmt.Errorf("%+q: %w", job.path, err)
		}
		job.git = job.git.listed(entries)
		for len(entries) > jobSize {
			more = append(more, walkJob{job.path, job.git, entries[:jobSize]})
			entries = entries[jobSize:]
		}
		job.entries = entries
	}
	found = map[string]record{}
	for _, e := range job.entries {
		child, descend, err := w.visit(d, job, e, found)
		if err != nil {
			return nil, nil, fmt.Errorf("%+q: %w", join(job.path, e.name), err)
		}
		if descend {
			more = append(more, child)
		}
	}
	return found, more, nil
}

// visit records one entry if it is watched, and tells whether to go into it.
func (w *walker) visit(d dir, job walkJob, e entry, found map[string]record) (child walkJob, descend bool, err error) {
	path := join(job.path, e.name)
	if w.r.skip[path] {
		return walkJob{}, false, nil
	}
	known := e.kind != kindUnknown
	var rec record
	if !known {
		if rec, err = w.r.take(d, e.name, path, kindUnknown); err != nil {
			return walkJob{}, false, err
		}
		e.kind = rec.kind
	}
	watched, descend := w.watched(job.git, path, e)
	if watched {
		if known {
			if rec, err = w.r.take(d, e.name, path, e.kind); err != nil {
				return walkJob{}, false, err
			}
			e.kind = rec.kind
		}
		found[path] = rec
	}
	if e.kind != kindDir || !descend {
		return walkJob{}, false, nil
	}
	child = walkJob{path: path}
	switch {
	case job.git.in:
		child.git = job.git.below(e.name)
	case w.t.isGitDir(path, e.name):
		child.git = gitPlace{in: true, pointed: foldKey(e.name) != ".git"}
	}
	return child, true, nil
}

// watched tells whether an entry is recorded, and whether to look into it. A git directory that only a pointer makes one
// must not hide protected names: who can write the pointer could hide anything.
func (w *walker) watched(git gitPlace, path string, e entry) (record, descend bool) {
	if !git.in {
		return w.r.full || w.tp.guards(path), true
	}
	record, descend = git.watched(e.name, e.kind, w.r.full)
	if git.pointed && !record {
		_, record = w.tp.plain.protects(path)
	}
	return record, descend
}
