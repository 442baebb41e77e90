// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/evoseal/containment/internal/cgroup"
)

// Fingerprint says what the host's side of every run rests on: see [executor.Fingerprinter]. What an executor adds
// comes after it, as pairs of a name and a value that tell its runs from those of another configuration.
func (h *Host) Fingerprint(more ...any) string {
	text := fmt.Sprintf("%s root=%v uids=%d+%d state=%q scratch=%q disk-scratch=%v mounts=%v workspace=%d/%d", h.Name,
		h.Root, h.FirstUID, h.UIDs, h.State, h.Scratch, h.DiskScratch, h.Mounts, h.WorkspaceBytes, h.WorkspaceFiles)
	for _, c := range []cgroup.Controller{cgroup.Memory, cgroup.Processes, cgroup.CPUs, cgroup.Kill} {
		text += fmt.Sprintf(" %v=%d", c, h.Cgroups.Version(c))
	}
	for i := 0; i+1 < len(more); i += 2 {
		text += fmt.Sprintf(" %v=%v", more[i], more[i+1])
	}
	return text
}

// Digest is the hexadecimal SHA-256 of what decides about a run, such as a filter.
func Digest(data ...[]byte) string {
	h := sha256.New()
	for _, d := range data {
		fmt.Fprintf(h, "%d\n", len(d))
		h.Write(d)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FileDigest is the same for a program, as it is on disk now.
func FileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
