// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"path/filepath"
)

// protectedPayload attacks one file that is declared read-only, in the way that Name says, and reports what it sees
// under that name afterwards.
func protectedPayload(p *payload) {
	p.reached()
	path := p.job.Paths[0]
	p.sayErr("attack", attackProtected(p.job.Name, path, p.job.Text))
	data, err := os.ReadFile(path)
	if err != nil {
		p.sayErr("gone", err)
		return
	}
	p.say("sees", string(data))
}

// attackProtected makes one attempt and says what the kernel answered; the verdict does not depend on that.
func attackProtected(how, path, text string) error {
	overwrite := func(p string) error { return os.WriteFile(p, []byte(text), 0o644) }
	beside := path + ".new"
	switch how {
	case "write":
		return overwrite(path)
	case "append":
		return appendTo(path, text)
	case "truncate":
		return os.Truncate(path, 0)
	case "chmod":
		return firstError(os.Chmod(path, 0o666), func() error { return overwrite(path) })
	case "rename":
		return firstError(overwrite(beside), func() error { return os.Rename(beside, path) })
	case "unlink":
		return firstError(os.Remove(path), func() error { return overwrite(path) })
	case "link":
		return firstError(os.Link(path, beside), func() error { return overwrite(beside) })
	case "symlink":
		return firstError(os.Symlink(filepath.Base(path), beside), func() error { return overwrite(beside) })
	case "parent":
		dir := filepath.Dir(path)
		if err := os.Rename(dir, dir+".old"); err != nil {
			return err
		}
		return firstError(os.MkdirAll(dir, 0o755), func() error { return overwrite(path) })
	case "descriptor":
		return viaDescriptor(path, text)
	}
	return fmt.Errorf("no attack is called %s", how)
}

// viaDescriptor opens for reading and asks the kernel for the same file again, for writing.
func viaDescriptor(path, text string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = f.Chmod(0o666)
	return appendTo(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), text)
}

// firstError goes on only if the step before it worked, as an attacker would.
func firstError(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}
