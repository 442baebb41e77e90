// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"slices"
)

// cases goes from what every executor must do to what few can. The order is that of a reader of the report.
func cases() []Case {
	return slices.Concat(
		specCases(), semanticsCases(), causeCases(), workspaceCases(), overlayCases(),
		envCases(), identityCases(), hostProcessCases(), launcherCases(), fileCases(), protectedCases(), networkCases(), syscallCases(),
		treeCases(), limitCases(), memoryCases(), diskCases(), outputCases(), artifactCases(), rootCases(),
		concurrencyCases(),
	)
}
