// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"maps"
	"slices"
)

// DefaultPath is the search path of every run unless Spec.Env replaces it.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BaseEnv returns the environment that every run starts from. home and tmp are the run's own writable directories, as
// the run sees them.
func BaseEnv(home, tmp string) map[string]string {
	return map[string]string{
		"PATH":           DefaultPath,
		"HOME":           home,
		"TMPDIR":         tmp,
		"LANG":           "C.UTF-8",
		"TZ":             "UTC",
		"XDG_CACHE_HOME": home + "/.cache",
		"GOCACHE":        home + "/.cache/go-build",
		"GOPATH":         home + "/go",
		"GOENV":          "off",
		"GOTOOLCHAIN":    "local",
	}
}

// Environ returns BaseEnv with Spec.Env over it as sorted "NAME=value" strings: the whole environment of the payload.
func (s Spec) Environ(home, tmp string) []string {
	env := BaseEnv(home, tmp)
	maps.Copy(env, s.Env)
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
