package child

import "syscall"

// DieWithParent makes the kernel end the program when this one is killed: nobody else would.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
