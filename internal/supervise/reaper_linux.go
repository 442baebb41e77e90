// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

// KillUser kills every process of the uid, which must be reserved for runs, and returns when none is left. It is for what
// a killed host program left behind, and needs root. It works in a process of its own, so that no thread of the host
// program ever changes its ids.
func KillUser(ctx context.Context, uid int) error {
	p, err := reexec.Start(stageReaper, []byte(strconv.Itoa(uid)), nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	defer stop()
	state, err := p.Wait()
	switch {
	case err != nil:
		return fmt.Errorf("supervise: reaper: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("supervise: processes of uid %d: %w", uid, context.Cause(ctx))
	case state.ExitCode() != 0:
		return fmt.Errorf("supervise: processes of uid %d are still alive (reaper: %v)", uid, state)
	}
	return nil
}

// reaperTime bounds the work of a reaper whose caller is gone.
const reaperTime = 10 * time.Second

func reaperMain(params []byte) int {
	uid, err := strconv.Atoi(string(params))
	if err != nil {
		return 1
	}
	for end := time.Now().Add(reaperTime); time.Now().Before(end); time.Sleep(killPause) {
		if _, err := killUID(uid); err != nil {
			return 1
		}
		reapAll() // the killers
		if busy, err := UserBusy(uid); err == nil && (!busy || !anyAlive(uid)) {
			return 0
		}
	}
	return 1
}

func reapAll() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WALL, nil)
		if err != nil && !errors.Is(err, unix.EINTR) || pid == 0 {
			return
		}
	}
}

// anyAlive tells processes from zombies: in a container whose init does not reap, the dead stay listed.
func anyAlive(uid int) bool {
	var t tree
	if t.read() != nil {
		return true
	}
	for pid, one := range t.tasks {
		if one.state == 'Z' || one.state == 'X' {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == uid {
			return true
		}
		// A process that is not dumpable belongs to root in /proc; its status tells the uid.
		if realUID(pid) == uid {
			return true
		}
	}
	return false
}

func realUID(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return -1
	}
	return parseUID(data)
}
