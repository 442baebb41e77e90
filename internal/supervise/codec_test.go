// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func fullJob() *Job {
	return &Job{
		Programs: []string{"/bin/a", ""}, Args: []string{"a", "\xff\xfe", "", "line\n"}, Env: []string{"A=b", "C=\x80"},
		Dir: "/d", UID: -1, GID: 65200, Reserved: true, Rlimits: []Rlimit{{7, 1, 1<<64 - 1}, {0, 0, 0}},
		Affinity: []uint64{1 << 63, 3}, Reachable: []string{"/x"}, Filter: []byte{0, 1, 255},
		Sample: true, Landlock: true, Cgroups: 3, Into: true,
		Wrapper: &Wrapper{Program: "/w", Args: []string{"w", "\xff"}, UID: 1000, GID: -1},
	}
}

func TestJobRoundTrip(t *testing.T) {
	for _, want := range []*Job{fullJob(), {}} {
		got, err := decodeJob(want.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Parameters that were cut off or lengthened are refused, never half understood.
func TestDamagedJob(t *testing.T) {
	data := fullJob().encode()
	for n := range data {
		if _, err := decodeJob(data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(data))
		}
	}
	if _, err := decodeJob(append(data, 0)); err == nil {
		t.Error("a byte too many was accepted")
	}
}

func FuzzDecodeJob(f *testing.F) {
	f.Add(fullJob().encode())
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		if job, err := decodeJob(data); err == nil {
			if again, err := decodeJob(job.encode()); err != nil || !cmp.Equal(job, again) {
				t.Errorf("%+v became %+v, %v", job, again, err)
			}
		}
	})
}
