// SPDX-License-Identifier: Apache-2.0

package allowlist

import "strings"

// checkBareName refuses a name line that is dressed up. Tools that undress such names differ in how far they go, so one
// of them may write to another file than the one that was checked.
func checkBareName(name string, line int) error {
	switch {
	case strings.Trim(name, "\"'`") != name:
		return malformed(line, "the name is in quotes or backticks: write the bare path")
	case strings.HasSuffix(name, ":"):
		return malformed(line, "the name ends with a colon: write the bare path")
	}
	for _, sign := range []string{"#", "//", "/*", "<!--", "--", ";"} {
		if strings.HasPrefix(name, sign) {
			return malformed(line, "the name starts like a comment: write the bare path")
		}
	}
	return nil
}
