package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryLimit: the heap stays below the memory of the container, unless GOMEMLIMIT says something else, which the runtime has read.
func TestMemoryLimit(t *testing.T) { //nolint:paralleltest // sets the limit of the process
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		container, golang string
		want              int64
	}{
		{"536870912", "", 536870912 / 100 * 90},
		{"", "", math.MaxInt64}, {"0", "", math.MaxInt64}, {"-1", "", math.MaxInt64}, {"512Mi", "", math.MaxInt64},
		{"536870912", "1GiB", math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv(memoryLimitVariable, test.container)
		t.Setenv("GOMEMLIMIT", test.golang)
		limitMemory()
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("%s=%q GOMEMLIMIT=%q: limit %d, want %d", memoryLimitVariable, test.container, test.golang, got, test.want)
		}
	}
}
