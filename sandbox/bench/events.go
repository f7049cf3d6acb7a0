package bench

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"strconv"
	"strings"
)

// eventRows are figures of tests and benchmarks, by "Name unit" without Test or Benchmark.
var eventRows = []struct {
	key, operation, unit string
	scale, goal          float64
}{
	{"UnchangedService cpu-ms/op", "CPU of a pass over an unchanged Service with 1,000 nodes", "ms", 1, 0.3},
	{"UnchangedService B/op", "garbage of that pass", "kB", 1e-3, 100},
	{"NodeEvent cpu-s/op", "CPU of a node event with 5,000 Services and 1,000 nodes", "s", 1, 2},
	{"NodeEvent B/op", "garbage of that event", "GB", 1e-9, 2},
	{"EndpointEventBehindAFanOut milliseconds", "endpoint event behind that node event, until its write", "ms", 1, 200},
	{"DriftIsReadTogether reads", "reads per Service and period of drift detection", "reads", 1, 1.2},
}

// events measures what events cost that change nothing in the cloud, how fast one that does gets past them, and what looking for drift
// costs, by the benchmarks and tests of pkg/slb. It runs in the source tree.
func events(ctx context.Context, r run) ([]Figure, error) {
	measured, err := testFigures(ctx, r, "-run", "^$", "-bench", "^Benchmark(UnchangedService|NodeEvent)$", "-benchmem")
	if err != nil {
		return nil, err
	}
	// They run one after the other: the first one measures the time of the processor.
	for _, args := range [][]string{{"-run", "^TestEndpointEventBehindAFanOut$", "-slb.large"}, {"-run", "^TestDriftIsReadTogether$"}} {
		more, err := testFigures(ctx, r, append(args, "-v", "-count=1")...)
		if err != nil {
			return nil, err
		}
		maps.Copy(measured, more)
	}
	var figures []Figure
	for _, row := range eventRows {
		value, ok := measured[row.key]
		if !ok {
			return nil, fmt.Errorf("go test ./pkg/slb does not report %q", row.key)
		}
		figures = append(figures, atMost(row.operation, value*row.scale, row.unit, row.goal))
	}
	return figures, nil
}

// testFigures runs tests or benchmarks of pkg/slb.
func testFigures(ctx context.Context, r run, args ...string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "./pkg/slb"}, args...)...)
	cmd.Stderr = r.progress
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run go test ./pkg/slb %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return benchmarkFigures(out), nil
}

// benchmarkFigures reads the lines of go test by "Name unit": those of benchmarks, and attributes of tests.
func benchmarkFigures(out []byte) map[string]float64 {
	figures := map[string]float64{}
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) == 5 && fields[1] == "ATTR" {
			if value, err := strconv.ParseFloat(fields[4], 64); err == nil {
				figures[strings.TrimPrefix(fields[2], "Test")+" "+fields[3]] = value
			}
			continue
		}
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
