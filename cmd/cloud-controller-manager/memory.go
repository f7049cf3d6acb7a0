package main

import (
	"os"
	"runtime/debug"
	"strconv"
)

// memoryLimitVariable holds the memory limit of the container in bytes. The manifests set it.
const memoryLimitVariable = "CONTAINER_MEMORY_LIMIT"

// heapShare is the part of the container's memory, in percent, up to which the garbage collector lets the heap grow before it works harder.
// The rest is for stacks and for what the kernel counts.
const heapShare = 90

// limitMemory keeps a burst of garbage from ending the process at the limit of its container. GOMEMLIMIT in the environment wins.
func limitMemory() {
	limit, err := strconv.ParseInt(os.Getenv(memoryLimitVariable), 10, 64)
	if err != nil || limit <= 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit / 100 * heapShare)
}
