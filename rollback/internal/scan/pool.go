// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"sync"
	"sync/atomic"
)

// pool hands out directories, last in, first out, so that few are waiting however wide a tree is. A worker that finds
// none helps another one to read the files of its directory.
type pool struct {
	mu     sync.Mutex
	wake   sync.Cond
	dirs   []*Node
	jobs   []*job
	active int // workers that may still find directories
	ended  bool
}

// job is the files of one open directory that have to be read.
type job struct {
	fd      int
	dir     *Node
	files   []*Node
	next    atomic.Int64
	again   atomic.Bool // the directory is not what was listed
	helpers sync.WaitGroup
	grown   atomic.Int64 // bytes that files have more than was listed

	mu   sync.Mutex
	left []left // entries that could not be read, only with Tolerate
}

type left struct {
	node   *Node
	why    Why
	detail string
}

func (j *job) leave(n *Node, why Why, detail string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = append(j.left, left{n, why, detail})
}

func newPool(root *Node) *pool {
	p := &pool{dirs: []*Node{root}}
	p.wake.L = &p.mu
	return p
}

// take waits for work. Neither a directory nor a job means that there will be none.
func (p *pool) take() (*Node, *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.ended:
			return nil, nil
		case len(p.dirs) > 0:
			n := p.dirs[len(p.dirs)-1]
			p.dirs = p.dirs[:len(p.dirs)-1]
			p.active++
			return n, nil
		case len(p.jobs) > 0:
			j := p.jobs[len(p.jobs)-1]
			j.helpers.Add(1)
			return nil, j
		case p.active == 0:
			p.ended = true
			p.wake.Broadcast()
			return nil, nil
		}
		p.wake.Wait()
	}
}

// done says that a directory is finished, and what was found in it.
func (p *pool) done(found []*Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(found) - 1; i >= 0; i-- {
		p.dirs = append(p.dirs, found[i])
	}
	if p.active--; len(found) > 0 || p.active == 0 {
		p.wake.Broadcast()
	}
}

func (p *pool) offer(j *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs = append(p.jobs, j)
	p.wake.Broadcast()
}

// withdraw returns when nobody helps any more.
func (p *pool) withdraw(j *job) {
	p.mu.Lock()
	for i := range p.jobs {
		if p.jobs[i] == j {
			p.jobs = append(p.jobs[:i], p.jobs[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	j.helpers.Wait()
}

// stop makes every take return nothing.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake.Broadcast()
}
