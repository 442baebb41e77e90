// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/evoseal/containment/executor"
)

// ErrStream: what was received breaks the request: the sender cannot be trusted.
var ErrStream = errors.New("artifact: the stream breaks its rules")

// Send needs Linux.
func Send(context.Context, Request, io.Writer) error {
	return fmt.Errorf("artifact: extraction needs Linux: %w", errors.ErrUnsupported)
}

// Receive needs Linux.
func Receive(context.Context, Request, io.Reader) ([]executor.Artifact, []executor.Refusal, error) {
	return nil, nil, fmt.Errorf("artifact: extraction needs Linux: %w", errors.ErrUnsupported)
}

// Extract needs Linux.
func Extract(context.Context, Request) ([]executor.Artifact, []executor.Refusal, error) {
	return nil, nil, fmt.Errorf("artifact: extraction needs Linux: %w", errors.ErrUnsupported)
}
