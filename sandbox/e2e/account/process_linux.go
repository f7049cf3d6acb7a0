package account

import "syscall"

// EndWithParent has the kernel end a manager whose stories were killed.
func EndWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
