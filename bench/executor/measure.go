// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// measurement is what was found out about each subject, by name.
type measurement struct {
	subjects []subject
	took     map[string][]float64 // milliseconds
	rate     map[string]float64   // runs in a second; 0: not measured
}

func measure(ctx context.Context, all []subject, rounds, flight int, window time.Duration) (*measurement, error) {
	m := &measurement{subjects: all, took: map[string][]float64{}, rate: map[string]float64{}}
	var able []subject
	for _, s := range all {
		if s.why == nil {
			able = append(able, s)
		}
	}
	const warm = 3 // rounds that do not count: page cache, lazily made state
	for round := range rounds + warm {
		for i := range able {
			s := able[(i+round)%len(able)]
			start := time.Now()
			if err := s.run(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round >= warm {
				m.took[s.name] = append(m.took[s.name], float64(time.Since(start).Microseconds())/1000)
			}
		}
	}
	if window <= 0 {
		return m, nil
	}
	for _, s := range able {
		var err error
		if m.rate[s.name], err = throughput(ctx, s, flight, window); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return m, nil
}

// throughput keeps some runs under way for a time, and counts those that ended in it.
func throughput(ctx context.Context, s subject, flight int, window time.Duration) (float64, error) {
	var (
		group sync.WaitGroup
		lock  sync.Mutex
		count int
		first error
	)
	start := time.Now()
	for range flight {
		group.Go(func() {
			for time.Since(start) < window {
				err := s.run(ctx)
				lock.Lock()
				if err != nil && first == nil {
					first = err
				}
				stop := first != nil
				count++
				lock.Unlock()
				if stop {
					return
				}
			}
		})
	}
	group.Wait()
	return float64(count) / time.Since(start).Seconds(), first
}

func (m *measurement) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tone run\tours/theirs\truns/s\tours/theirs\tbeside")
	for _, s := range m.subjects {
		if s.why != nil {
			continue
		}
		took, rate := m.took[s.name], m.rate[s.name]
		fmt.Fprintf(table, "%s\t%.2f (%.2f)\t%s\t%.1f\t%s\t%s\n", s.name, median(took), slices.Min(took),
			ratio(slices.Min(took), slices.Min(or(m.took[s.peer]))), rate, ratio(rate, m.rate[s.peer]), s.peer)
	}
	table.Flush()
	for _, s := range m.subjects {
		if s.why != nil {
			fmt.Fprintf(w, "not measured: %s: %v\n", s.name, s.why)
		}
	}
}

// or lets the minimum of nothing be zero.
func or(values []float64) []float64 {
	if len(values) == 0 {
		return []float64{0}
	}
	return values
}

func ratio(ours, theirs float64) string {
	if theirs == 0 || ours == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ours/theirs)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}
