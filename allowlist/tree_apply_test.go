// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
)

// mixed is a tree and a set of every operation.
func mixed(t *testing.T) (dir string, edits []allowlist.Edit) {
	dir = newFiles(t, map[string]string{"src/a": "a\n", "src/d/b": "b\n", "src/c": "c\n", "configs/s": "s\n"})
	must(t, os.Chmod(filepath.Join(dir, "src/a"), 0o750))
	must(t, os.Chmod(filepath.Join(dir, "src/c"), 0o600))
	return dir, []allowlist.Edit{
		modify("src/a", "a\n", "A\n"), modify("src/d/b", "b\n", "B\n"), remove("src/c", "c\n"),
		create("src/new", "n\n"), create("src/x/y/z", "z\n"), create("src/x/w", "w\n"),
	}
}

// TestApplyFailsAnywhere lets each step fail in turn: the tree is as it was every time, in its full description.
func TestApplyFailsAnywhere(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	errStep := errors.New("injected")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		for _, cancel := range []bool{false, true} {
			for _, full := range []bool{false, true} {
				for n := 1; ; n++ {
					dir, edits := mixed(t)
					before := readTree(t, dir)
					ctx, stop := context.WithCancel(t.Context())
					count := 0
					opts := *o
					opts.Sync, opts.Full = full, full
					allowlist.SetHook(&opts, func(string) error {
						if count++; count == n && cancel {
							stop() // seen by the next step
						} else if count == n {
							return errStep
						}
						return nil
					})
					tree := openTree(t, dir, &opts)
					plan, err := p.Plan(tree, edits)
					must(t, err)
					_, err = plan.Apply(ctx)
					stop()
					if err == nil {
						if n < 20 {
							t.Errorf("only %d steps", n-1)
						}
						break
					}
					if !errors.Is(err, errStep) && !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "incomplete") {
						t.Fatalf("step %d: %v", n, err)
					}
					wantTree(t, dir, before)
				}
			}
		}
	})
}

// TestRevertFailsAnywhere is the same for the way back: a failed Revert leaves the applied set, and can be repeated.
func TestRevertFailsAnywhere(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	errStep := errors.New("injected")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir, edits := mixed(t)
		tree := openTree(t, dir, o)
		before := readTree(t, dir)
		r, err := applyEdits(t, p, tree, edits...)
		must(t, err)
		applied := readTree(t, dir)
		for n := 1; ; n++ {
			count := 0
			allowlist.Rehook(tree, func(string) error {
				if count++; count == n {
					return errStep
				}
				return nil
			})
			err := r.Revert(t.Context())
			if err == nil {
				break
			}
			if !errors.Is(err, errStep) {
				t.Fatalf("step %d: %v", n, err)
			}
			wantTree(t, dir, applied)
		}
		wantTree(t, dir, before)
		if err := r.Revert(t.Context()); !errors.Is(err, allowlist.ErrApplied) {
			t.Errorf("second Revert: got %v, want ErrApplied", err)
		}
	})
}

// TestApplyIsCompareAndSwap changes the tree after Plan, or in the middle of Apply.
func TestApplyIsCompareAndSwap(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	set := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
	}
	for name, c := range map[string]struct {
		step   string // of Apply; empty: before it
		change func(t *testing.T, dir string)
		want   error
		native bool // the portable walk cannot see it
	}{
		"content":             {"", set("src/a", "x\n"), allowlist.ErrConflict, false},
		"deleted one changes": {"", set("src/c", "x\n"), allowlist.ErrConflict, false},
		"gone": {"", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "src/a"))) },
			allowlist.ErrConflict, false},
		"created one appears": {"", set("src/new", "x\n"), allowlist.ErrConflict, false},
		"twin appears":        {"", set("src/NEW", "x\n"), allowlist.ErrCaseCollision, false},
		"mode": {"", func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "src/a"), 0o600)) },
			allowlist.ErrConflict, false},
		"second link": {"", func(t *testing.T, dir string) {
			must(t, os.Link(filepath.Join(dir, "src/a"), filepath.Join(dir, "src/l")))
		}, allowlist.ErrHardLink, false},
		"link": {"", func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "src/a")))
			must(t, os.Symlink("../configs/s", filepath.Join(dir, "src/a")))
		}, allowlist.ErrSymlink, false},
		"directory link": {"", func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "src/d"), filepath.Join(dir, "src/e")))
			must(t, os.Symlink("../configs", filepath.Join(dir, "src/d")))
		}, allowlist.ErrSymlink, false},
		"content at the swap": {"swap", set("src/a", "x\n"), allowlist.ErrConflict, false},
		"link at the swap": {"swap", func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "src/a")))
			must(t, os.Symlink("../configs/s", filepath.Join(dir, "src/a")))
		}, allowlist.ErrSymlink, false},
		"protected name at the swap":  {"swap", set("configs/s", "x\n"), allowlist.ErrTampered, false},
		"protected name that appears": {"swap", set("configs/t", "x\n"), allowlist.ErrTampered, false},
		"our file after the swap":     {"verify", set("src/a", "x\n"), allowlist.ErrTampered, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir, edits := mixed(t)
				once := true
				var want map[string]string
				change := func() {
					if once {
						once = false
						c.change(t, dir)
					}
				}
				allowlist.SetHook(o, func(step string) error {
					if step == c.step {
						change()
					}
					return nil
				})
				tree := openTree(t, dir, o)
				plan, err := p.Plan(tree, edits)
				must(t, err)
				if c.step == "" {
					change()
				}
				want = readTree(t, dir)
				_, err = plan.Apply(t.Context())
				if !errors.Is(err, c.want) || strings.Contains(err.Error(), "incomplete") {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if c.step != "" {
					return // compared by TestApplyFailsAnywhere; here somebody else wrote as well
				}
				wantTree(t, dir, want)
			})
		})
	}
}

// TestFullSeesMore: with Full, also a file that no rule protects is watched during Apply.
func TestFullSeesMore(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		dir, edits := mixed(t)
		o := &allowlist.TreeOptions{Full: full}
		allowlist.SetHook(o, func(step string) error {
			if step == "swap" {
				putFile(t, dir, "src/foreign", "x\n", 0o644)
			}
			return nil
		})
		_, err := applyEdits(t, loadPolicy(t, treePolicyText), openTree(t, dir, o), edits...)
		if errors.Is(err, allowlist.ErrTampered) != full {
			t.Errorf("Full %v: %v", full, err)
		}
	}
}

func TestRevertRefused(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for name, change := range map[string]func(t *testing.T, dir string){
		"modified":       func(t *testing.T, dir string) { putFile(t, dir, "src/a", "mine\n", 0o750) },
		"created":        func(t *testing.T, dir string) { putFile(t, dir, "src/new", "mine\n", 0o644) },
		"deleted":        func(t *testing.T, dir string) { putFile(t, dir, "src/c", "mine\n", 0o644) },
		"mode":           func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "src/a"), 0o700)) },
		"in a directory": func(t *testing.T, dir string) { putFile(t, dir, "src/x/y/mine", "mine\n", 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir, edits := mixed(t)
				r, err := applyEdits(t, p, openTree(t, dir, o), edits...)
				must(t, err)
				change(t, dir)
				want := readTree(t, dir)
				if err := r.Revert(t.Context()); !errors.Is(err, allowlist.ErrConflict) {
					t.Errorf("got %v, want conflict", err)
				}
				wantTree(t, dir, want)
			})
		})
	}
}

// TestApplyRevertIsIdentity applies random sets to random trees, compares with a model, and goes back.
func TestApplyRevertIsIdentity(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for seed := range uint64(30) {
		eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			dir, edits := randomSet(t, rnd)
			o.Sync, o.Full = seed%5 == 0, seed%3 == 0
			tree := openTree(t, dir, o)
			before := readTree(t, dir)
			r, err := applyEdits(t, p, tree, edits...)
			must(t, err)
			want := readTree(t, dir)
			for _, e := range edits {
				expectEdit(want, e)
			}
			wantTree(t, dir, want)
			must(t, r.Revert(t.Context()))
			wantTree(t, dir, before)
		})
	}
}

func randomSet(t *testing.T, rnd *rand.Rand) (dir string, edits []allowlist.Edit) {
	dir = newFiles(t, map[string]string{"configs/s": "s\n", "src/keep": "k\n"})
	for i := range 1 + rnd.IntN(12) {
		name := "src/" + strings.Repeat(fmt.Sprintf("d%d/", rnd.IntN(3)), rnd.IntN(4)) + fmt.Sprintf("f%d", i)
		content := numbered(rnd.IntN(20), fmt.Sprint(rnd.IntN(9)))
		old := numbered(rnd.IntN(20), fmt.Sprint(rnd.IntN(9)))
		mode := fs.FileMode(0o600 | rnd.UintN(0o200))
		switch rnd.IntN(4) {
		case 0:
			edits = append(edits, create(name, content))
		case 1:
			putFile(t, dir, name, old, mode)
			edits = append(edits, remove(name, old))
		case 2:
			putFile(t, dir, name, old, mode)
			edits = append(edits, modify(name, old, content))
		default:
			putFile(t, dir, name, old, mode)
		}
	}
	if len(edits) == 0 {
		edits = append(edits, create("src/one", "1\n"))
	}
	return dir, edits
}
