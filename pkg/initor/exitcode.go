package initor

// Exit codes of the program. Scripts and pods see them, so they do not change.
const (
	// ExitOK says that the provider ID is set, or was set already, or that the node is not an ECS instance.
	ExitOK = 0
	// ExitFailed says that a flag or a variable is wrong, or that the API server refuses or does not answer.
	ExitFailed = 1
	// ExitConflict says that the node has another provider ID; trying again does not help.
	ExitConflict = 2
	// ExitUnidentified says that it could not be found out which instance the node is.
	ExitUnidentified = 3
	// ExitNodes says that there are nodes which need somebody's attention: the commands for a workstation list them.
	ExitNodes = 4
)
