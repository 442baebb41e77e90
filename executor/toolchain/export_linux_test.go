// SPDX-License-Identifier: Apache-2.0

package toolchain

import "context"

// SeedDir returns where the seed of this configuration is or would be.
func SeedDir(ctx context.Context, c GoConfig) (string, error) {
	g, err := findGo(ctx, c)
	if err != nil {
		return "", err
	}
	s, err := g.openSeed(ctx, c.Seed)
	if err != nil {
		return "", err
	}
	return s.dir, nil
}
