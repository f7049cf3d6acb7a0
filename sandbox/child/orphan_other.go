//go:build !linux

package child

import "syscall"

// DieWithParent is for Linux only; elsewhere a sandbox that is killed leaves the program running.
func DieWithParent() *syscall.SysProcAttr { return nil }
