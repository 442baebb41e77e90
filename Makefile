# SPDX-License-Identifier: Apache-2.0
#
# make test    everything: set-up, format, vet, staticcheck, tests of all modules as root and as an ordinary user
# make lint    the checks that run no test
# make bench   the benchmarks
# make stress  the long versions of the tests for leftovers, and the race detector in what the gate runs without
# make crash   the long versions of the tests with kill -9 and power cuts
# make fmt     format the tree
#
# Plain `go test ./...` works too, and skips what this host lacks.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.SILENT:
.PHONY: test setup gate lint format vet cross staticcheck modules stress crash bench fmt

# Without a work file each module is what its consumers get.
MODULES = $(shell go list -m -f '{{.Dir}}')
# The modules that are tagged; bench/ and examples/ are not.
RELEASED = $(filter-out %/bench %/examples,$(MODULES))
TARGETS := darwin/arm64 windows/amd64 linux/arm64

test: setup lint gate

setup:
	.ci/setup

gate: setup
	umask 022
	go run ./internal/gate

lint: format vet cross staticcheck modules

format:
	echo "gofmt"
	unformatted=$$(gofmt -l .)
	if [[ -n $$unformatted ]]; then
		echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1
	fi

vet:
	for module in $(MODULES); do
		cd "$$module"
		echo "go vet, $$module"
		go vet ./...
		GOWORK=off go vet ./...
	done

# Everything must compile where it does not work, and say so when it is called.
cross:
	for target in $(TARGETS); do
		for module in $(RELEASED); do
			cd "$$module"
			echo "go vet, $$module, $$target"
			packages=(./...)
			# containerd's client has 350 packages, and this module says nothing to the processor but in these directories.
			if [[ $$module == */executor/containerd && $$target == linux/arm64 ]]; then
				packages=(./internal/... ./cmd/...)
			fi
			# What is compiled for another system never runs here, so it need not be optimised.
			GOWORK=off CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go vet -gcflags=all='-N -l' "$${packages[@]}"
		done
	done

# -modfile needs GOWORK=off, and the tool must not inherit it: so it is built first and started by its path.
staticcheck:
	tool=$$(GOWORK=off go tool -modfile=tools.mod -n staticcheck)
	for module in $(MODULES); do
		cd "$$module"
		echo "staticcheck, $$module"
		GOWORK=off "$$tool" ./...
	done

modules:
	for module in $(RELEASED); do
		cd "$$module"
		echo "go mod tidy, $$module"
		GOWORK=off go mod tidy -diff
	done

# The long versions of the tests for leftovers: 1,000 runs in a row and more, 50 killed host programs and more.
stress:
	go test ./executor/rlimit -run 'TestNothingIsLeft|TestHostKilled' -v -timeout 30m -stress.runs 5000 -stress.kills 200
	go test ./executor/bubblewrap -run 'TestNothingIsLeft|TestHostKilled' -v -timeout 30m -stress.runs 2000 -stress.kills 200
	go test ./executor/containerd -run 'TestNothingIsLeft|TestHostKilled|TestDaemonsKilled' -v -timeout 60m -stress.runs 1000 -stress.kills 50
	go test ./runaway -run ThreatModel4 -v -timeout 30m -stress.runs 100
	# What the gate runs without the race detector.
	go test -race -p=1 -timeout 60m ./executor/... ./executor/containerd/... ./isolation ./rollback/...

# 1,000 killed processes, and 50 power cuts of each of three arrangements of file systems; cuts need root.
crash: setup
	go test ./rollback/rollbacktest -count=1 -timeout 30m -suite.long
	go test ./rollback/internal/crashtest -v -count=1 -timeout 60m -crash.kills 1000 -crash.cuts 50

bench:
	for module in $(MODULES); do
		cd "$$module"
		go test -run=NONE -bench=. -benchmem ./...
	done
	go run -tags containerd ./bench/executor
	go run ./bench/rollback

fmt:
	gofmt -w .
