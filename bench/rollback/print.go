// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// print writes the table: what each took, and our minimum as a part of theirs.
func (b *bench) print(w io.Writer) {
	names := []string{}
	for _, p := range b.peers {
		names = append(names, p.name())
	}
	names = append(names, floorOf)
	fmt.Fprintf(w, "\n%d files, %.1f MiB\n", b.files, float64(b.bytes)/(1<<20))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprint(table, "step")
	for _, name := range names {
		fmt.Fprintf(table, "\t%s", name)
	}
	for _, name := range names[1:] {
		fmt.Fprintf(table, "\tours/%s", name)
	}
	fmt.Fprintln(table)
	for _, step := range steps {
		fmt.Fprint(table, step)
		for _, name := range names {
			fmt.Fprintf(table, "\t%s", summary(b.times[step][name]))
		}
		for _, name := range names[1:] {
			fmt.Fprintf(table, "\t%s", ratio(b.times[step][names[0]], b.times[step][name]))
		}
		fmt.Fprintln(table)
	}
}

func summary(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g (%.4g)", median(values), slices.Min(values))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// ratio compares minima: what the machine did beside it only ever adds.
func ratio(ours, theirs []float64) string {
	if len(ours) == 0 || len(theirs) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", slices.Min(ours)/slices.Min(theirs))
}
