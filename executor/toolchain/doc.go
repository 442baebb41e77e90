// SPDX-License-Identifier: Apache-2.0

// Package toolchain finds Go, Python and Node.js on the host and says what a run needs of them: read-only mounts,
// environment and search path. With that, go test, python3 -m unittest and node --test work inside any executor,
// offline.
//
//	tc, err := toolchain.Go(ctx, toolchain.GoConfig{Seed: toolchain.GoSeed{
//		Dir: "/var/lib/example/seeds", Module: "/srv/example/accepted",
//	}})
//	if err == nil {
//		err = tc.Apply(&spec)
//	}
//
// Targets of mounts equal their sources, so that executors without a mount namespace can use them. A [Toolchain] is
// data: one for another language is written down by hand. Several can be applied to one specification.
//
// # How a program is found
//
// It is the first that is usable in the absolute directories of the caller's PATH, and then of
// [executor.DefaultPath]. Nobody but root and the caller may be able to change it or what it lies in, links included,
// or it is not started. For root it must be reachable for others too, since runs have a uid of their own: a toolchain
// in root's home is passed over. The program is asked, with an environment of our own and the root as working
// directory, where its parts are.
//
// # The seed of Go
//
// A run begins with an empty build cache, so that no variant meets what another one left. To compile the standard
// library in every run would take longer than everything else. The host therefore makes a seed, once, from a trusted
// version of the program: the compiled packages and the facts for vet, the modules that it needs, and a small program
// that the go command inside uses as its cache (GOCACHEPROG). That program reads from the seed, which is mounted
// read-only and belongs to the caller, and adds to the run's own cache.
//
// The identity of a compiled package includes the flags, the environment and, unless -trimpath is among the flags,
// its directory. So the seed is built with what the run will have, and modules lie at the same place in both. The
// main module is elsewhere in each run and is compiled there, as a changed one is anyway.
//
// A seed is named by a hash of what it depends on. Another one is made if Go, the flags, the requirements or the
// imports of the trusted version differ. Processes that want the same one at the same time make it once. It counts
// when it is complete, and what a killed process leaves is removed by the next. Each time that Go is called, owner
// and mode of every file are checked, and the program and every output against its hash; Apply checks owner and mode
// of the seed and its directories.
//
// # Errors
//
//   - [executor.ErrUnsupported], an [*executor.UnsupportedError]: nothing usable is installed. It says why, and what to
//     install. On other systems than Linux nothing is found.
//   - [ErrConflict], a [*ConflictError]: Apply would have to change what the specification says.
//   - [ErrSeed], a [*SeedError]: a seed cannot be made, or somebody else could have changed it.
//   - [ErrConfig]: a configuration is wrong.
//   - the context's error.
//
// # What it does not do
//
//   - It contains nothing: that mounts are read-only and the network is off is the executor's work. For an ordinary
//     caller in tier 1 the seed has the uid of the run, and only Landlock protects it; without Landlock a run could
//     change it. The next Go call finds a changed program, outputs, modes and owners, but not changed module sources.
//   - It does not judge the trusted version. A seed is compiled with the caller's rights, cgo included; its tests are
//     compiled and not run. An ordinary caller's runs have the caller's uid, so their files look like the caller's own.
//   - It downloads nothing. Modules that are not in the host's module cache must be fetched first, and a variant that
//     needs a module that the trusted version does not need fails; see [GoSeed.Extra].
//   - It ignores go.work files, on the host and inside, and the caller's go env -w settings.
//   - It keeps old seeds, since runs may still use them; they can be removed by hand when there are none. The directory
//     "host" beside them holds the caches of the builds.
//   - It does not hide packages that lie in the library directory of the Python that was found. -mod=mod, npm, pip and
//     whatever else wants a registry do not work inside.
//   - It brings no C compiler: cgo is on if there is one in the default search path, and the executor must then show
//     it.
//   - In tier 1 the runs of an ordinary caller cannot chmod by path unless rlimit.Config.PathMetadata is set: tests
//     that do so fail there.
//   - Access control lists are not looked at.
package toolchain
