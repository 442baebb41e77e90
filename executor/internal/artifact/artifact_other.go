// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/executor"
)

// Extract needs Linux.
func Extract(context.Context, Request) ([]executor.Artifact, []executor.Refusal, error) {
	return nil, nil, fmt.Errorf("artifact: extraction needs Linux: %w", errors.ErrUnsupported)
}
