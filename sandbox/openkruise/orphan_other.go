//go:build !linux

package openkruise

import "syscall"

// dieWithParent is for Linux only; elsewhere a sandbox that is killed leaves its manager running.
func dieWithParent() *syscall.SysProcAttr { return nil }
