//go:build linux

package realnode

// bootSpec is what the first process of a machine has to do. It arrives as a JSON line on its standard input; orders follow.
type bootSpec struct {
	Hostname string
	// Disk is the directory of the host with the machine's own etc, run, var/lib and var/log.
	Disk     string
	Programs []program
}

// program is one that the machine starts at boot, in the order of the list.
type program struct {
	Name string
	// Args is the command line; Args[0] is a path or a name in machinePath.
	Args []string
	// Env is added to the environment that all programs share.
	Env []string
	// Socket is the Unix socket that the next programs need: they start when it accepts connections. Empty: they start at once.
	Socket string
	// Once says that the program has to succeed once in the life of the machine, before the next ones start. Others are started again
	// whenever they end.
	Once bool
}

// order asks the first process to stop or start a program, as systemctl would.
type order struct {
	Stop  string `json:",omitempty"`
	Start string `json:",omitempty"`
}

// answer is the reply to the boot and to each order, a JSON line on standard output.
type answer struct {
	Error string `json:",omitempty"`
}
