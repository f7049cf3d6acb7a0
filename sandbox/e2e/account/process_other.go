//go:build unix && !linux

package account

import "syscall"

// EndWithParent: only Linux ends a process with its parent. A manager whose stories were killed goes on, and serves what is left of them.
func EndWithParent() *syscall.SysProcAttr { return nil }
