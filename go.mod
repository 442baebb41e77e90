module github.com/evoseal/containment

// A patch-level line forces every consumer to have it, and we ask for one all the same: Go 1.26.5 fixes the os.Root
// escape CVE-2026-39822, and this library must not be built without that fix.
go 1.26.5

require github.com/bmatcuk/doublestar/v4 v4.10.4
