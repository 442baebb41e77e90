// SPDX-License-Identifier: Apache-2.0

package cgroup

import "context"

// KillOneByOne is Kill on a host without a kill file.
func KillOneByOne(ctx context.Context, g *Group) error {
	dirs, err := g.hold()
	if err != nil {
		return err
	}
	defer release(dirs)
	for i := range dirs {
		dirs[i].version = 1
	}
	return kill(ctx, dirs)
}
