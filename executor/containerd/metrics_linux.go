// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"time"

	cgroup1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	cgroup2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/typeurl/v2"

	"github.com/evoseal/containment/executor"
)

// figures are what the kernel counted for a box, process 1 included.
type figures struct {
	by           executor.Mechanism
	oomKills     int64
	memoryLimit  int64
	peakMemory   int64
	tasksLimit   int64
	user, system time.Duration
	cpu          time.Duration // exact, where user and system are rounded
}

// metrics asks for the figures of a box. They exist until the task is deleted; with gVisor, until process 1 ends.
func (c *conn) metrics(ctx context.Context, id string) (figures, error) {
	if err := c.present(ctx); err != nil {
		return figures{}, err
	}
	ctx, cancel := c.within(ctx, askTime)
	defer cancel()
	r, err := c.tasks().Metrics(ctx, &tasks.MetricsRequest{Filters: []string{"id==" + id}})
	if err != nil {
		return figures{}, explain("metrics", native(err))
	}
	if len(r.GetMetrics()) != 1 || r.GetMetrics()[0].GetData() == nil {
		return figures{}, &DaemonError{Op: "metrics", Err: errors.New("the daemon has none")}
	}
	data, err := typeurl.UnmarshalAny(r.GetMetrics()[0].GetData())
	if err != nil {
		return figures{}, &DaemonError{Op: "metrics", Err: err}
	}
	switch m := data.(type) {
	case *cgroup1.Metrics:
		return figuresV1(m), nil
	case *cgroup2.Metrics:
		return figuresV2(m), nil
	}
	return figures{}, &DaemonError{Op: "metrics", Err: fmt.Errorf("unknown kind %T", data)}
}

func figuresV1(m *cgroup1.Metrics) figures {
	return figures{
		by:          executor.ByCgroupV1,
		oomKills:    int64(m.GetMemoryOomControl().GetOomKill()),
		memoryLimit: int64(m.GetMemory().GetUsage().GetLimit()),
		peakMemory:  int64(m.GetMemory().GetUsage().GetMax()),
		tasksLimit:  int64(m.GetPids().GetLimit()),
		user:        time.Duration(m.GetCPU().GetUsage().GetUser()),
		system:      time.Duration(m.GetCPU().GetUsage().GetKernel()),
		cpu:         time.Duration(m.GetCPU().GetUsage().GetTotal()),
	}
}

func figuresV2(m *cgroup2.Metrics) figures {
	return figures{
		by:          executor.ByCgroupV2,
		oomKills:    int64(m.GetMemoryEvents().GetOomKill()),
		memoryLimit: int64(m.GetMemory().GetUsageLimit()),
		peakMemory:  int64(m.GetMemory().GetMaxUsage()),
		tasksLimit:  int64(m.GetPids().GetLimit()),
		user:        time.Duration(m.GetCPU().GetUserUsec()) * time.Microsecond,
		system:      time.Duration(m.GetCPU().GetSystemUsec()) * time.Microsecond,
		cpu:         time.Duration(m.GetCPU().GetUsageUsec()) * time.Microsecond,
	}
}
