//go:build !linux

package child

import "syscall"

// dieWithParent is for Linux only; elsewhere a sandbox that is killed leaves the program running.
func dieWithParent() *syscall.SysProcAttr { return nil }
