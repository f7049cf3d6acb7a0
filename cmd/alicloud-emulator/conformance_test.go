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
	if err := runConformance(t.Context(), []string{"--real", "--products", "slb", "--budget", "1"}, &out); err == nil ||
		!strings.Contains(err.Error(), "--budget") {
		t.Errorf("a plan above the budget: %v", err)
	}
}

// TestConformanceFlags: each refusal is one line that names the flag, its value and what is accepted, and comes before anything is printed.
func TestConformanceFlags(t *testing.T) { //nolint:paralleltest // the environment of the process
	for _, name := range []string{"ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"} {
		t.Setenv(name, "")
	}
	const account = "--real --yes --vpc vpc-1 --vswitches vsw-1,vsw-2"
	for args, want := range map[string]string{
		"--real --endpoint http://x":        "--real and --endpoint http://x exclude each other",
		"clean":                             "clean needs --real or --endpoint",
		"clean --real --out x.json":         "--out x.json: clean writes no recording",
		"--yes":                             "--yes needs --real",
		"--budget 3":                        "--budget needs --real",
		"--real --budget nan":               "--budget NaN is not an amount in CNY from 0",
		"--real --budget -1":                "--budget -1 is not an amount in CNY from 0",
		"--real --yes --vswitches a,b":      "--real --yes needs --vpc of a VPC that was made for the run",
		"--real --yes --vpc vpc-1":          "--real --yes needs --vswitches of a VPC that was made for the run",
		account + " --vpc=":                 `--vpc "" is not the ID of a VPC`,
		account:                             "--real needs ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET",
		"clean --real":                      "--real needs ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET",
		"--vswitches vsw-a":                 "--vswitches vsw-a: needs two different IDs",
		"--vswitches vsw-a,vsw-a":           "--vswitches vsw-a,vsw-a: needs two different IDs",
		"--vswitches vsw-a,":                "--vswitches vsw-a,: needs two different IDs",
		"--products slb,ram":                "--products ram: known are slb, nlb, vpc, ecs, sts, quotas",
		"--region=":                         `--region "" is not the ID of a region such as cn-hangzhou`,
		"--region evil.example.com/":        `--region "evil.example.com/" is not the ID of a region such as cn-hangzhou`,
		"--role admin":                      `--role "admin" is not the ARN of a role such as acs:ram::1234567890123456:role/name`,
		"--tag MyRun":                       `--tag "MyRun" does not have 5 to 32 characters a-z, 0-9 and -`,
		"--endpoint nowhere":                `--endpoint "nowhere" is not a URL such as http://127.0.0.1:18080`,
		"--endpoint ftp://x":                `--endpoint "ftp://x" is not a URL such as http://127.0.0.1:18080`,
		"--endpoint http://127.0.0.1:1/slb": `--endpoint "http://127.0.0.1:1/slb" is not a URL such as http://127.0.0.1:18080`,
		"--out /nowhere/x.json":             "--out /nowhere/x.json: open /nowhere/x.json: no such file or directory",
		"now":                               `unexpected argument "now"`,
		"--endpoint http://127.0.0.1:1":     "call vpc DescribeVSwitchAttributes: dial tcp 127.0.0.1:1: connect: connection refused",
	} {
		var out strings.Builder
		err := runConformance(t.Context(), strings.Fields(args), &out)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
		if out.Len() > 0 {
			t.Errorf("%s printed %s", args, &out)
		}
	}
}
