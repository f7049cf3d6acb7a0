//go:build unix && fleet

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const (
	doctorOK    = 0
	doctorWrong = 2
)

// TestDoctor runs the command under the published role, beside no manager, whose Lease it is told not to look for: first nothing has a
// provider ID, then all is well, then one thing after the other is broken and repaired.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{nodes: 2})
	w.wrong("provider ID of node-1", "missing")
	for i := 1; i <= 2; i++ {
		w.setProviderID(nodeName(i), cluster.Region+"."+instanceID(i))
	}
	if code, report := w.doctor(); code != doctorOK {
		t.Fatalf("exit code %d with nothing broken:\n%s", code, report)
	}

	w.admin(http.MethodPut, "accesskeys/"+cluster.AccessKeyID, map[string]any{"permissions": []string{"ecs:*", "vpc:*", "slb:Describe*"}}, nil)
	w.wrong("slb:CreateLoadBalancer", "denied")
	w.admin(http.MethodPut, "accesskeys/"+cluster.AccessKeyID, map[string]any{"permissions": []string{}}, nil)

	restore := w.withoutRight("services/status")
	w.wrong("may patch services/status", "may not patch")
	restore()

	w.wrong("pod CIDR of node-1", "outside", "--cluster-cidr=10.250.0.0/16")
	for field, test := range map[string]struct{ value, subject, detail string }{
		"region":          {"cn-nowhere", "region", "Global.region"},
		"vpcid":           {"vpc-other", "VPC", "vpc-other"},
		"routeTableIDs":   {"vtb-other", "route tables", "vtb-other"},
		"accessKeySecret": {"b3RoZXI=", "access key", "SignatureDoesNotMatch"},
	} {
		w.settings = map[string]string{field: test.value}
		w.wrong(test.subject, test.detail)
	}
	w.settings = nil
	w.until("all is well again", eventDeadline, func(context.Context) string {
		if code, report := w.doctor(); code != doctorOK {
			return fmt.Sprintf("exit code %d:\n%s", code, report)
		}
		return ""
	})
}

// doctor runs the command and returns its exit code and report.
func (w *world) doctor(args ...string) (int, doctor.Report) {
	w.Helper()
	endpoint := strings.TrimPrefix(w.url, "http://")
	p := launch(w.T, managerProgram, []string{
		"SLB_ENDPOINT=" + endpoint, "NLB_ENDPOINT=" + endpoint, "VPC_ENDPOINT=" + endpoint, "ECS_ENDPOINT=" + endpoint,
		"ALICLOUD_CLIENT_SCHEME=HTTP",
	}, append([]string{
		"doctor", "--output=json", "--leader-elect=false", "--cloud-config=" + w.cloudConfig(), "--kubeconfig=" + w.as.Kubeconfig,
		"--cluster-cidr=" + cluster.PodCIDR,
	}, args...)...)
	code := p.wait(startDeadline)
	var report doctor.Report
	if err := json.Unmarshal([]byte(p.stdout.String()), &report); err != nil {
		w.Fatalf("exit code %d, %v; standard error:\n%s", code, err, lastLines(p.stderr.String()))
	}
	return code, report
}

// wrong waits until doctor finds the subject wrong: the API server takes a moment to act on a changed role.
func (w *world) wrong(subject, detail string, args ...string) {
	w.Helper()
	w.until("doctor finds "+subject, eventDeadline, func(context.Context) string {
		code, report := w.doctor(args...)
		for _, check := range report.Checks {
			if code == doctorWrong && check.Status == doctor.Wrong && check.Subject == subject && strings.Contains(check.Detail, detail) &&
				check.Fix != "" {
				return ""
			}
		}
		return fmt.Sprintf("exit code %d:\n%s", code, report)
	})
}

// withoutRight takes a resource out of the manager's ClusterRole; restore puts it back.
func (w *world) withoutRight(resource string) (restore func()) {
	w.Helper()
	roles := w.client.RbacV1().ClusterRoles()
	role, err := roles.Get(w.Context(), "system:"+managerProgram, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	update := func(rules []rbacv1.PolicyRule) {
		w.Helper()
		role.Rules = rules
		if role, err = roles.Update(w.Context(), role, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	all := role.Rules
	var fewer []rbacv1.PolicyRule
	for _, rule := range all {
		if rule.Resources[0] != resource {
			fewer = append(fewer, rule)
		}
	}
	update(fewer)
	return func() { update(all) }
}
