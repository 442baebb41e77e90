// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"debug/elf"
	"errors"
	"os"
	"slices"
	"strings"
)

// kernelFacts are read anew each time: a process can be moved to another kernel while it lives.
func kernelFacts() (release, bootID string, err error) {
	read := func(name string) string {
		text, readErr := os.ReadFile("/proc/sys/kernel/" + name)
		text2 := strings.TrimSpace(string(text))
		if readErr == nil && text2 == "" {
			readErr = errors.New(name + " is empty")
		}
		err = errors.Join(err, readErr)
		return text2
	}
	return read("osrelease"), read("random/boot_id"), err
}

// needsLoader reports whether this program names an interpreter that must be there to start it.
func needsLoader() bool {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
