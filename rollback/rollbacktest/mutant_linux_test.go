// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A suite that lets a broken store pass is worse than none, so each mutant is the plain store with one defect, and the
// cases that are about it must fail with a breach.

// defect is what is wrong with a plain store; empty: nothing.
type defect string

const (
	captured defect = ""

	followsLinks       defect = "follows links"
	timeAndSize        defect = "compares time and size only"
	noSecondStat       defect = "skips the second stat"
	listedSize         defect = "stops at the listed size"
	fullBuffer         defect = "loses what does not fit into a buffer"
	dropsEmpty         defect = "drops empty directories"
	dropsTimes         defect = "drops times"
	roundsTimes        defect = "rounds times to seconds"
	executeBitOnly     defect = "knows the execute bit only"
	dropsXattrs        defect = "drops extended attributes"
	splitsLinks        defect = "makes two files of a hard link"
	dropsSpecial       defect = "drops special files silently"
	capturesSetID      defect = "captures set-id files"
	ignoresLimits      defect = "ignores limits"
	swallowsErrors     defect = "swallows read errors"
	knowsNoGit         defect = "takes .git for content"
	ignoresContext     defect = "ignores its context"
	todaysExcludes     defect = "takes today's excludes"
	digestIsContent    defect = "its digests know no attributes"
	manifestFirst      defect = "writes the manifest before the data"
	storesAgain        defect = "stores everything each time"
	trustsStore        defect = "does not check hashes"
	executableStore    defect = "makes its files executable"
	ignoresWriteErrors defect = "ignores write errors"
	forgetsParent      defect = "forgets the parent"
	prefixList         defect = "refuses by a list of prefixes"
	forgetsHome        defect = "does not know home and .git"
	knowsByPath        defect = "knows trees by their path"
	fillsRoots         defect = "fills named roots that are not empty"
	insideStore        defect = "works inside itself"
	nestsTrees         defect = "lets trees overlap"
	restoresAnother    defect = "restores another checkpoint when one is missing"
	restoresAll        defect = "writes all files again"
	writesInPlace      defect = "writes in place"
	ignoresDirModes    defect = "ignores modes and times of directories"
	ignoresRoot        defect = "ignores the root's attributes"
	ignoresTouch       defect = "restores old times always"
	overwritesForeign  defect = "overwrites what it does not know"
	recursiveDelete    defect = "deletes directories with all that is in them"
	dropsSafety        defect = "takes no safety checkpoint"
	unlinksChanged     defect = "unlinks without looking"
	planWrites         defect = "writes when it plans"
	noJournal          defect = "has no journal"
	redoByPosition     defect = "loses its place after a crash"
	lockFile           defect = "locks by a file"
	noLock             defect = "does not lock"
	firstFault         defect = "stops at the first fault"
	prunesPinned       defect = "prunes pinned checkpoints"
	pruneDataFirst     defect = "prunes data before manifests"
	pruneIgnoresLock   defect = "prunes beside a checkpoint"
)

// mutants says what catches each defect: IDs of cases, each of which must.
var mutants = map[defect][]string{
	followsLinks:       {"C3", "R13"},
	timeAndSize:        {"C6"},
	noSecondStat:       {"C8"},
	listedSize:         {"C8b"},
	fullBuffer:         {"C14"},
	dropsEmpty:         {"C1", "R1"},
	dropsTimes:         {"C5"},
	roundsTimes:        {"C5", "R1"},
	executeBitOnly:     {"R4", "H2"},
	dropsXattrs:        {"H3"},
	splitsLinks:        {"H1"},
	dropsSpecial:       {"C7", "C7b"},
	capturesSetID:      {"C13"},
	ignoresLimits:      {"C11"},
	swallowsErrors:     {"C9"},
	knowsNoGit:         {"R6"},
	ignoresContext:     {"R12"},
	todaysExcludes:     {"C2b"},
	digestIsContent:    {"A3"},
	manifestFirst:      {"X2b"},
	storesAgain:        {"G3"},
	trustsStore:        {"S1", "S3"},
	executableStore:    {"S5"},
	ignoresWriteErrors: {"X5"},
	forgetsParent:      {"A2"},
	prefixList:         {"T1"},
	forgetsHome:        {"T1b"},
	knowsByPath:        {"T2", "L5"},
	fillsRoots:         {"T2b"},
	insideStore:        {"T3"},
	nestsTrees:         {"T4"},
	restoresAnother:    {"T5"},
	restoresAll:        {"R5"},
	writesInPlace:      {"R9", "R14"},
	ignoresDirModes:    {"R4", "R4b"},
	ignoresRoot:        {"R4c"},
	ignoresTouch:       {"H4"},
	overwritesForeign:  {"F2"},
	recursiveDelete:    {"F1"},
	dropsSafety:        {"R11", "F4"},
	unlinksChanged:     {"R8b"},
	planWrites:         {"R10"},
	noJournal:          {"X2"},
	redoByPosition:     {"X2"},
	lockFile:           {"L1"},
	noLock:             {"L2"},
	firstFault:         {"S4"},
	prunesPinned:       {"G1"},
	pruneDataFirst:     {"G2"},
	pruneIgnoresLock:   {"L3"},
}

// inMemory lets a test make its directories where creating a file costs little. What a mutant does wrong it does there
// too; the store itself is tested on what the temporary directory is on.
func inMemory(t *testing.T) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err == nil && st.Type == unix.TMPFS_MAGIC {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

func TestMutants(t *testing.T) {
	inMemory(t)
	for d, ids := range mutants {
		t.Run(string(d), func(t *testing.T) {
			if working(t, openPlain(d)) {
				return
			}
			for _, id := range ids {
				if err := breach(t, id, openPlain(d)); !errors.Is(err, ErrBreach) {
					t.Errorf("%s does not catch it: %v", id, err)
				} else {
					t.Logf("caught: %v", err)
				}
			}
		})
	}
}

// breach runs a case until it finds a breach. Those that kill at random moments, or race, may need more than one try.
func breach(t *testing.T, id string, open Open) (err error) {
	t.Helper()
	const tries = 6
	for range tries {
		if err = caseOf(t, id).Check(t.Context(), open, t.TempDir()); errors.Is(err, ErrBreach) {
			return err
		}
	}
	return err
}

// caseOf fails the test for an ID that nobody has, so that a renamed case is not lost.
func caseOf(t *testing.T, id string) Case {
	t.Helper()
	all := slices.Concat(Cases(), processCases(t), rootCases(t))
	i := slices.IndexFunc(all, func(c Case) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("no case has the ID %s", id)
	}
	return all[i]
}

var long = flag.Bool("suite.long", false, "let the plain store pass the whole suite; make crash does")

// TestPlain: the suite demands nothing that only one store can do. By default a few cases of each theme; that the
// others hold changes only with the suite.
func TestPlain(t *testing.T) {
	inMemory(t)
	if *long || working(t, openPlain(captured)) {
		Run(t, openPlain(captured))
		return
	}
	for _, id := range []string{"C1", "C4", "R1", "R2", "H1", "F1", "T2", "R10", "R11", "S3", "G1", "X2", "P1"} {
		if err := caseOf(t, id).Check(t.Context(), openPlain(captured), t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}
