package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// What events of a cluster with 5,000 Services and 1,000 nodes may cost.
const (
	unchangedMillis    = 0.3
	unchangedKilobytes = 100
	nodeEventSeconds   = 2
	nodeEventGigabytes = 2
)

// events measures what events cost that change nothing in the cloud, by the benchmarks of pkg/slb. It runs in the source tree.
func events(ctx context.Context, r run) ([]Figure, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./pkg/slb", "-run", "^$", "-bench", "^Benchmark(UnchangedService|NodeEvent)$", "-benchmem")
	cmd.Stderr = r.progress
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks of pkg/slb: %w\n%s", err, out)
	}
	measured := benchmarkFigures(out)
	return []Figure{
		atMost("CPU of a pass over an unchanged Service with 1,000 nodes", measured["UnchangedService cpu-ms/op"], "ms", unchangedMillis),
		atMost("garbage of that pass", measured["UnchangedService B/op"]/1e3, "kB", unchangedKilobytes),
		atMost("CPU of a node event with 5,000 Services and 1,000 nodes", measured["NodeEvent cpu-s/op"], "s", nodeEventSeconds),
		atMost("garbage of that event", measured["NodeEvent B/op"]/1e9, "GB", nodeEventGigabytes),
	}, nil
}

// benchmarkFigures reads the lines of go test by "Name unit".
func benchmarkFigures(out []byte) map[string]float64 {
	figures := map[string]float64{}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
		for i := 3; i < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i-1], 64); err == nil {
				figures[name+" "+fields[i]] = value
			}
		}
	}
	return figures
}
