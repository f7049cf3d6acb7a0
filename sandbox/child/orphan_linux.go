package child

import "syscall"

// dieWithParent makes the kernel end the program when this one is killed: nobody else would.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
