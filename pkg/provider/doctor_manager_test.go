package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// TestDoctorStartsWithTheLeader: the first thing that is asked on call is whether anything manages the cluster. If nothing does, the report
// is not empty.
func TestDoctorStartsWithTheLeader(t *testing.T) {
	t.Parallel()
	held := func(by string, age time.Duration) func() *coordinationv1.Lease {
		return func() *coordinationv1.Lease { return leaseOf(LeaseName, by, age) }
	}
	for name, test := range map[string]struct {
		lease    func() *coordinationv1.Lease // as of the time of its own test, which may be long after the table; nil for none
		election bool
		status   doctor.Status
		detail   string
	}{
		"leads":      {held("node-1_a", 3*time.Second), true, doctor.OK, "node-1_a for 60m, renewed "},
		"none":       {nil, true, doctor.Wrong, "nobody holds Lease kube-system/cloud-controller-manager, so nothing manages the cluster"},
		"given back": {held("", 3*time.Second), true, doctor.Wrong, "nobody holds Lease"},
		"dead": {held("node-1_a", 5*time.Minute), true, doctor.Wrong,
			"node-1_a no longer renews Lease kube-system/cloud-controller-manager, last 5m"},
		"no election": {nil, false, doctor.NotChecked, "leader election is switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.nodes = p.nodes[:1]
			if test.lease != nil {
				p.nodes = append(p.nodes, test.lease())
			}
			if !test.election {
				p.settings.Lease = ElectionLease{}
			}
			report := p.examine(t)
			first := report.Checks[0]
			if first.Subject != "leader" || first.Status != test.status || !strings.Contains(first.Detail, test.detail) {
				t.Errorf("the first line is %+v, want %s with %q", first, test.status, test.detail)
			}
			if report.Empty() != (test.status != doctor.Wrong) || (first.Fix != "") != (test.status == doctor.Wrong) {
				t.Errorf("empty: %t, remedy %q", report.Empty(), first.Fix)
			}
		})
	}
}

// balancedService is one with a load balancer, whose condition says so or not.
func balancedService(name string, age time.Duration, conditions ...metav1.Condition) *corev1.Service {
	svc := testkube.Service(name, testkube.TCP(80))
	svc.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
	for i := range conditions {
		conditions[i].Type, conditions[i].LastTransitionTime = service.ConditionSynced, metav1.NewTime(time.Now().Add(-age))
	}
	svc.Status.Conditions = conditions
	return svc
}

// TestDoctorListsServicesThatAreNotInSync: five of them with the reason, those first that have waited for the longest time, and how many
// others.
func TestDoctorListsServicesThatAreNotInSync(t *testing.T) {
	t.Parallel()
	failed := metav1.Condition{Status: metav1.ConditionFalse, Reason: "SyncLoadBalancerFailed",
		Message: "create CLB: CreateLoadBalancer: OverQuota"}
	synced := metav1.Condition{Status: metav1.ConditionTrue, Reason: "EnsuredLoadBalancer"}
	paused := metav1.Condition{Status: metav1.ConditionFalse, Reason: "Paused"}
	p := newPatient(t)
	for i := range 7 {
		p.nodes = append(p.nodes, balancedService(fmt.Sprintf("bad-%d", i), time.Duration(10-i)*time.Hour, failed))
	}
	other := balancedService("of-nobody", time.Hour)
	other.Spec.LoadBalancerClass = new("example.com/other")
	deleted := balancedService("deleted", 20*time.Hour, synced)
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.NewTime(time.Now().Add(-20*time.Hour))), []string{"service.k8s.alibaba/resources"}
	p.nodes = append(p.nodes, balancedService("good", time.Hour, synced), balancedService("paused", time.Hour, paused),
		balancedService("new", time.Second),
		balancedService("forgotten", 2*time.Hour), other, deleted)
	report := p.examine(t)
	var got []string
	for _, check := range report.Checks {
		if check.Area == doctor.AreaServices {
			got = append(got, fmt.Sprintf("%s %s: %s", check.Status, check.Subject, check.Detail))
		}
	}
	want := []string{
		"wrong default/deleted: Deleting for 20h: the Service is being deleted, and its load balancer still exists",
		"wrong default/bad-0: SyncLoadBalancerFailed for 10h: create CLB: CreateLoadBalancer: OverQuota",
		"wrong default/bad-1: SyncLoadBalancerFailed for 9h: create CLB: CreateLoadBalancer: OverQuota",
		"wrong default/bad-2: SyncLoadBalancerFailed for 8h: create CLB: CreateLoadBalancer: OverQuota",
		"wrong default/bad-3: SyncLoadBalancerFailed for 7h: create CLB: CreateLoadBalancer: OverQuota",
		"wrong 4 others: 3 SyncLoadBalancerFailed, 1 NeverReconciled",
		"ok in sync: 3 of 12",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDoctorIsShort: whatever is alike is one line, and what is wrong comes first.
func TestDoctorIsShort(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.nodes = p.nodes[1:]
	for i := range 40 {
		p.nodes = append(p.nodes, runtime.Object(patientNode(fmt.Sprintf("n%02d", i), "", "10.244.0.0/24")))
	}
	report := p.examine(t)
	lines := strings.Split(report.String(), "\n")
	if len(lines) > 50 || !strings.Contains(lines[1], "provider ID of n00") {
		t.Errorf("%d lines:\n%s", len(lines), report)
	}
	for _, want := range []string{"35 others", "slb:*", "nlb:*", "rights at the API server"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	problems := report.Problems().String()
	if strings.Contains(problems, " ok ") && !strings.Contains(problems, "0 optional") || strings.Contains(problems, "slb:*") ||
		!strings.Contains(problems, "provider ID of n04") {
		t.Errorf("only the problems:\n%s", problems)
	}
	if !strings.HasSuffix(problems, lines[len(lines)-2]+"\n") {
		t.Errorf("the summary of the problems is not that of the report, %q:\n%s", lines[len(lines)-2], problems)
	}
}
