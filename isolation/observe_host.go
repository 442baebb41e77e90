// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// clusterNames are variables that an orchestrator sets, whose machines are shared.
var clusterNames = []string{
	"KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT", "NOMAD_ALLOC_ID", "ECS_CONTAINER_METADATA_URI",
	"ECS_CONTAINER_METADATA_URI_V4", "K_SERVICE", "AWS_LAMBDA_FUNCTION_NAME", "FLY_APP_NAME", "DYNO",
	"MARATHON_APP_ID",
}

// sharedCgroups are parts of a control group's path that a container engine or an orchestrator has made.
var sharedCgroups = []string{"kubepods", "docker", "containerd", "libpod", "crio", "lxc", "ecs", "garden", "nomad",
	"actions_job"}

// firstHumanUID and lastHumanUID are what login.defs(5) calls UID_MIN and UID_MAX. Beyond the latter follow dynamic
// users of systemd, "nobody", and then directory services and subordinate ids, which belong to somebody.
const (
	firstHumanUID = 1000
	lastHumanUID  = 60000
	afterNobody   = 65536
)

// seeHost looks for signs that others work on this machine.
func seeHost(ctx context.Context, s Sources) (g sighting[Host]) {
	for _, name := range s.EnvNames {
		if name, _, _ = strings.Cut(name, "="); contains(clusterNames, name) {
			g.sign(Shared, "variable %s is set by an orchestrator", name)
		}
	}
	if s.Proc == "" {
		g.fail("it is not said where procfs is: fill in Sources.Proc")
		return g
	}
	cgroups, err := readSmall(filepath.Join(s.Proc, "self", "cgroup"))
	if err != nil {
		g.fail("the control group of this process: %v", err)
	}
	for _, part := range sharedCgroups {
		if strings.Contains(strings.ToLower(string(cgroups)), part) {
			g.sign(Shared, "this process is in a control group of %s", part)
		}
	}
	uids, err := processUIDs(ctx, s.Proc)
	if err != nil {
		g.fail("who has processes here: %v", err)
	}
	human := slices.DeleteFunc(uids, func(uid uint32) bool { return !humanUID(uid) || ownUID(uid, s.OwnUIDs) })
	if len(human) > 1 {
		g.sign(Shared, "%d accounts have processes here: %d", len(human), human)
	}
	return g
}

func humanUID(uid uint32) bool {
	return uid >= firstHumanUID && uid <= lastHumanUID || uid >= afterNobody
}

func ownUID(uid uint32, own []UIDRange) bool {
	for _, r := range own {
		if uid >= r.First && uint64(uid) < uint64(r.First)+uint64(r.Count) {
			return true
		}
	}
	return false
}

// processUIDs returns the real user ids of all processes, sorted and each once.
func processUIDs(ctx context.Context, proc string) ([]uint32, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	seen, first := map[uint32]bool{}, false
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		status, err := readSmall(filepath.Join(proc, e.Name(), "status"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		uid, err := realUID(status)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", pid, err)
		}
		seen[uid], first = true, first || pid == 1
	}
	if !first {
		return nil, errors.New("process 1 is not to be seen, so others may be hidden too (mount option hidepid)")
	}
	uids := make([]uint32, 0, len(seen))
	for uid := range seen {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids, nil
}

// realUID reads the line "Uid:" of proc_pid_status(5): real, effective, saved and file system id.
func realUID(status []byte) (uint32, error) {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				uid, err := strconv.ParseUint(fields[0], 10, 32)
				return uint32(uid), err
			}
		}
	}
	return 0, errors.New("its status names no user")
}

// readSmall reads a file that cannot be large, and refuses one that is.
func readSmall(path string) ([]byte, error) {
	const most = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}
