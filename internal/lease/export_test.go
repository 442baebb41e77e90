// SPDX-License-Identifier: Apache-2.0

package lease

import "io"

// CheckRange, CheckUsers and CheckSubordinate let tests judge users that this host does not have.
func (c SlotConfig) CheckRange(caller uint64) error          { return c.checkRange(caller) }
func (c SlotConfig) CheckUsers(passwd io.Reader) error       { return c.checkUsers(passwd) }
func (c SlotConfig) CheckSubordinate(subuid io.Reader) error { return c.checkSubordinate(subuid) }
