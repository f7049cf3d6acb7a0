package main

import (
	"strings"
	"testing"
)

// TestAllLogsHaveTheFormat: with the format JSON, nothing is logged as text, not even what precedes the stock command.
func TestAllLogsHaveTheFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "--cloud-config="+w.file(t, cloudConfig(goodID, goodSecret, "cn-hangzhou")), "--cluster-cidr=10.244.0.0/99",
		"--leader-elect-resource-lock=endpoints", "--logging-format=json", "--v=10")
	logged := 0
	for line := range strings.Lines(got.Output) {
		switch {
		case strings.HasPrefix(line, "{"):
			logged++
		// Only programs that are built with the race detector say so, as they start.
		case strings.HasSuffix(line, "Data race detection enabled\n"):
		case !strings.HasPrefix(line, "cloud-controller-manager: --cluster-cidr"): // the error that ends the program
			t.Errorf("a line of text: %s", line)
		}
	}
	if logged == 0 {
		t.Errorf("no line of JSON: %s", got.Output)
	}
}
