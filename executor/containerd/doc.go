// SPDX-License-Identifier: Apache-2.0

// Package containerd is the tier 2 executor.
package containerd
