// SPDX-License-Identifier: Apache-2.0

//go:build !containerd

package main

import (
	"context"
	"errors"

	"github.com/evoseal/containment/executor"
)

// containerSubjects says how to get them: containerd's client is a hundred times the rest of this program.
func containerSubjects(context.Context, string, func(string, string, executor.Executor, error) subject) ([]subject, error) {
	return []subject{{name: "containerd", why: errors.New("start the program with: go run -tags containerd ./bench/executor")}}, nil
}
