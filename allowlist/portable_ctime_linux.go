// SPDX-License-Identifier: Apache-2.0

package allowlist

import "syscall"

func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
