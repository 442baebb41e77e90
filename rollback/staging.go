// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strconv"
	"strings"

	"github.com/evoseal/containment/rollback/internal/object"
)

var errNotExist = fs.ErrNotExist

// Names of staging directories. What is before the last dash is ours to say: store and tree, and the root's own time,
// which making the directory changes. So a restore that died before its commit leaves no trace, and one call makes the
// directory together with what is known of it.
const (
	stagingPrefix = ".rollback-"
	keptPrefix    = ".rollback-kept-" // holds something that could not be moved to quarantine; never removed
)

// stagingTag tells our staging from that of another store or another tree.
func stagingTag(storeID, treeKey string) string {
	sum := sha256.Sum256([]byte(storeID + "\x00" + treeKey))
	return hex.EncodeToString(sum[:8])
}

// stagingName makes a name that nothing has.
func stagingName(tag string, root *object.Entry) string {
	return stagingPrefix + tag + "-" + strconv.FormatUint(uint64(root.Sec), 16) + "-" +
		strconv.FormatUint(uint64(root.Nsec), 16) + "-" + strings.ToLower(rand.Text()[:13])
}

// parseStaging takes a name apart. Anything that stagingName does not make is refused.
func parseStaging(name string) (tag string, sec int64, nsec uint32, ok bool) {
	rest, ok := strings.CutPrefix(name, stagingPrefix)
	part := strings.Split(rest, "-")
	if !ok || len(part) != 4 || len(part[0]) != 16 || len(part[3]) != 13 || strings.ContainsAny(part[3], "/\x00") {
		return "", 0, 0, false
	}
	s, okSec := parseHex(part[1])
	n, okNsec := parseHex(part[2])
	if !okSec || !okNsec || n > 999_999_999 {
		return "", 0, 0, false
	}
	return part[0], int64(s), uint32(n), true
}

// parseHex accepts the one spelling of a number that FormatUint has.
func parseHex(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil && strconv.FormatUint(n, 16) == s
}

func isStaging(name string) bool {
	_, _, _, ok := parseStaging(name)
	return ok
}

// txid names the quarantine of a restore.
func txid(staging string) string { return strings.TrimPrefix(staging, stagingPrefix) }

// isLocal reports whether a path stays below its root and has one spelling.
func isLocal(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.Contains(name, "\x00") {
			return false
		}
	}
	return true
}
