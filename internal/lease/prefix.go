// SPDX-License-Identifier: Apache-2.0

package lease

// Prefix begins every name from [NewID], and so every name that belongs to a run.
const Prefix = idPrefix
