// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"slices"
)

func cases() []Case {
	return slices.Concat(captureCases(), changingCases(), limitCases(), targetCases(), restoreCases(), attributeCases(),
		foreignCases(), raceCases(), answerCases(), damageCases(), pruneCases(), randomCases())
}

// newCase gives a function on a scene the form of a case.
func newCase(id, name string, need Feature, why string, f func(*scene)) Case {
	var check func(context.Context, Open, string) error = scened(id, f)
	return Case{ID: id, Name: name, Why: why, Need: need, Check: check}
}
