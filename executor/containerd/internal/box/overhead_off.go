// SPDX-License-Identifier: Apache-2.0

//go:build !race

package box

// Overhead is the memory that the supervisor may need beside the payload, in bytes. The tests demand it: about 4 MiB are
// its own after much has passed through; the rest is for its stacks and page tables, and for what the kernel keeps for a box.
const Overhead = 16 << 20
