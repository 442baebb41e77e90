// SPDX-License-Identifier: Apache-2.0

package main

// help is what -h prints. A test holds it against the flags.
const help = `evolve: a program that rewrites its own code, and cannot do harm with it.

usage: go run ./examples/evolve [flags]
       go run ./examples/evolve -tree DIR -surface PATTERN [-test COMMAND] [flags]
       go run ./examples/evolve -generator command [flags] -- PROGRAM [ARGS]

Without flags it evolves a rule for online bin packing. Items arrive one by one, and each must be put at once into
the bin that a function written in Go scores highest. The run begins with best fit, and genetic programming rewrites
the body of that function. Every variant goes the one way there is: judged by an edit policy, written into the tree,
compiled and tested in an executor without network, secrets or rights, measured by the host from the packing that it
leaves behind, and kept or taken back. Nothing but Go is needed, and no rights.

The source is ./examples/evolve/program, and the checkout is never written to: the run works in a directory of its
own, which it prints first. That directory holds the tree as it evolves, a checkpoint of each accepted step, the
journals, and the curve as SVG.

What is evolved
  -problem NAME      uniform: sizes 20 to 100, capacity 150. weibull: shape 3, scale 45, capacity 100.
                     Default: uniform, or what the first file of -instances has.
  -instances FILE    a file in the format of the OR-library, which the result is measured on at the end; repeatable.
                     It is never used for the search. Capacities and numbers of items are bounded.
  -seed N            seed of instances and search; the same seed gives the same variants. Default 1.
  -screen N          candidates that are bred for each variant. The host interprets them on a small sample (they are
                     trees of a closed grammar, and no code), and sends the best to be compiled and tested.
                     0: none, every child is compiled. Default 250.
  -tree DIR          work on a copy of this Go module instead; the patch is in the state directory in the end.
  -surface PATTERN   what may be changed in it, such as 'pkg/**.go'; repeatable. Tests and go.mod never may.
  -test COMMAND      what decides, run without a shell. Default "go test ./...", which gets -json and is read.

Who writes the variants
  -generator NAME    genetic: genetic programming (default).
                     repair: mutations of Go operators and constants, for one-line bugs (default with -tree).
                     openai: a model behind an OpenAI-compatible endpoint. Nobody is a trusted provider by himself, so
                     this needs tier 2, a container for each variant; the run says how.
                     command: a program that reads the state as JSON and prints edits. It needs tier 2 as well, and
                     since nobody knows what it does, a person's approval.
  -url URL           of the endpoint, such as http://127.0.0.1:11434/v1
  -model NAME        which model
  -key-file FILE     holds the key; default none. There is no flag and no variable for the key itself.
  -calls N           budget of calls; default three for each variant
  -tokens N          budget of tokens; default 1,000,000
  -patience DURATION the longest that one answer of a model or program may take; default 2m

How it is contained
  -executor NAME     auto, bubblewrap, rlimit or containerd (which needs CGO_ENABLED=0 go run -tags containerd …).
                     Each is attacked before it is used, and must hold what the run requires. auto takes the
                     first that does.
  -allow-old-runtime use containerd although its runtime has known holes, such as the one of Debian 12
  -wall DURATION     the longest that one variant may take; default 1m
  -override FILE     an override of a trigger, and
  -approval FILE     an approval: documents of an operator, see package isolation. Where an approval is needed, the
                     refusal shows what to write into it.

The run
  -max N             variants; default 120. With -resume the total, which may be raised.
  -kill-file FILE    the run stops as soon as this exists; default STOP in the governor's directory, printed first
  -state DIR         where everything is. Default: a new directory in containment-evolve-UID in the temporary
                     directory. The compiled standard library is kept there, or in DIR, for later runs.
  -resume            go on with the run in -state, or with the newest one. It may have been killed at any instant.
  -curve FILE        where the curve goes as well, beside curve.svg in the state directory
  -v                 log what the parts do, to standard error
  -h                 this text

Exit codes
  0  it came to its end, and what it found is better than what it began with (with -tree: the tests pass)
  1  it came to its end, and nothing better was found
  2  wrong call
  3  refused: this host does not have what the run requires, such as an executor that holds, or Go; nothing was
     generated or run
  4  stopped before its end: kill file, signal, budget. -resume goes on
  5  a fault: the state is damaged, or a file cannot be read or written
`
