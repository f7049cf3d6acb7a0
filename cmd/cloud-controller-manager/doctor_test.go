package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/selfexec"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
)

// TestDoctorRunsWhereTheManagerCannotStart: what keeps the manager from starting is a line of the report, and only a flag
// that cannot be understood is an error.
func TestDoctorRunsWhereTheManagerCannotStart(t *testing.T) {
	t.Parallel()
	const cidr = "--cluster-cidr=10.244.0.0/16"
	for name, test := range map[string]struct {
		config  string
		args    []string
		code    int
		subject string // of a wrong line
		detail  string
	}{
		"malformed file": {config: `{"Global": `, code: exitFindings, subject: "cloud-config", detail: "not valid YAML"},
		"wrong secret": {config: cloudConfig(goodID, badSecret, "cn-hangzhou"), code: exitFindings, subject: "access key",
			detail: "SignatureDoesNotMatch"},
		"no API server": {
			config: cloudConfig(goodID, goodSecret, "cn-hangzhou"), args: []string{"--kubeconfig=none"}, code: exitFindings,
			subject: "API server", detail: "127.0.0.1:1",
		},
		"bad flag": {config: cloudConfig(goodID, goodSecret, "cn-hangzhou"), args: []string{"--network=vpc", "--node-gone-over=-1s"}, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			args := append([]string{"doctor", "--v=2", "--output=json", "--kubeconfig=" + w.kubeconfig, "--cloud-config=" + w.file(t, test.config),
				cidr}, test.args...)
			for i, arg := range args {
				if arg == "--kubeconfig=none" {
					args[i] = "--kubeconfig=" + w.kubeconfigFor(t, "http://127.0.0.1:1")
				}
			}
			var stderr strings.Builder
			got := selfexec.RunApart(t, &stderr, "cloud-controller-manager", w.env(), args...)
			if got.Code != test.code {
				t.Fatalf("exit code %d, want %d; standard error:\n%s", got.Code, test.code, stderr.String())
			}
			if strings.Contains(got.Output+stderr.String(), goodSecret) || strings.Contains(got.Output+stderr.String(), badSecret) {
				t.Error("the output shows a secret")
			}
			if test.subject != "" && stderr.String() != "" {
				t.Errorf("beside the report, it prints:\n%s", stderr.String())
			}
			if test.subject == "" {
				checkErrorLine(t, stderr.String(), []string{"--node-gone-over"})
				return
			}
			var report doctor.Report
			if err := json.Unmarshal([]byte(got.Output), &report); err != nil {
				t.Fatalf("%v in:\n%s", err, got.Output)
			}
			for _, check := range report.Checks {
				if check.Subject == test.subject && check.Status == doctor.Wrong && strings.Contains(check.Detail, test.detail) {
					return
				}
			}
			t.Errorf("%q is not wrong with %q:\n%s", test.subject, test.detail, report)
		})
	}
}
