package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
)

func TestConformanceInProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "recording.json")
	var out strings.Builder
	if err := runConformance(t.Context(), []string{"--products", "sts,ecs", "--out", path}, &out); err != nil {
		t.Fatal(err, out.String())
	}
	if !strings.Contains(out.String(), "facts checked") {
		t.Error(out.String())
	}
	if d, err := conformance.Read(path); err != nil || d.Real || len(d.Findings()) > 0 {
		t.Errorf("recording: %v, real %t, %v", err, d.Real, d.Findings())
	}
}

// TestConformanceDryRun: without --yes, the price is printed and no key is needed, because nothing is called.
func TestConformanceDryRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := runConformance(t.Context(), []string{"--real", "--products", "slb"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CreateLoadBalancer", "together at most", "nothing was called"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &out)
		}
	}
	if err := runConformance(t.Context(), []string{"--real", "--products", "slb", "--budget", "1"}, &out); err == nil || !strings.Contains(err.Error(), "--budget") {
		t.Errorf("a plan above the budget: %v", err)
	}
}

func TestConformanceFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--real --endpoint http://x": "exclude",
		"clean":                      "needs --real or --endpoint",
		"--real --yes":               "--vpc",
		"--vswitches vsw-a":          "two IDs",
		"--products slb,ram":         "known are",
		"--endpoint nowhere":         "not a URL",
		"now":                        "unexpected argument",
	} {
		err := runConformance(t.Context(), strings.Fields(args), new(strings.Builder))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
