module github.com/evoseal/containment

// A patch-level line forces every consumer to have it, and we ask for one all the same: Go 1.26.5 fixes the os.Root
// escape CVE-2026-39822, and this library must not be built without that fix.
go 1.26.5

require (
	github.com/bluekeyes/go-gitdiff v0.9.0
	github.com/bmatcuk/doublestar/v4 v4.10.4
	github.com/elastic/go-seccomp-bpf v1.6.0
	github.com/google/go-cmp v0.7.0
	github.com/hashicorp/go-multierror v1.1.1
	github.com/klauspost/compress v1.20.4
	github.com/landlock-lsm/go-landlock v0.11.2
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/net v0.41.0
	golang.org/x/sys v0.50.0
	golang.org/x/text v0.44.0
)

require (
	github.com/hashicorp/errwrap v1.0.0 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.78 // indirect
)
