// SPDX-License-Identifier: Apache-2.0

package isolation

import "context"

// ExitStatus keeps what exits by itself with 0 and meets no limit. A variant that calls exit(0) before its tests has
// passed then; choose it only for runs whose exit status is made by something that variants cannot change.
type ExitStatus struct{}

// Judge looks at the way in which the run ended.
func (ExitStatus) Judge(ctx context.Context, e Evaluation) (Ruling, error) {
	if ctx.Err() != nil {
		return Reject, context.Cause(ctx)
	}
	r := newReport()
	r.ended(e)
	if err := r.err(); err != nil {
		return Reject, err
	}
	return Keep, nil
}
