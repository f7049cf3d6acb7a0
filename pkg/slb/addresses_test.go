package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// bindEIP binds a new elastic address to the CLB, as its owner would.
func (w *world) bindEIP(id string) string {
	w.t.Helper()
	var eip struct{ AllocationId, EipAddress string }
	w.raw(api.VersionVPC, "AllocateEipAddress", nil, &eip)
	w.raw(api.VersionVPC, "AssociateEipAddress", map[string]string{
		"AllocationId": eip.AllocationId, "InstanceId": id, "InstanceType": "SlbInstance",
	}, nil)
	return eip.EipAddress
}

func (w *world) shown(name string) []string {
	w.t.Helper()
	var shown []string
	for _, ingress := range w.get(name).Status.LoadBalancer.Ingress {
		shown = append(shown, ingress.IP+ingress.Hostname)
	}
	return shown
}

func TestServiceShowsTheElasticAddress(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	own := w.shown("web")
	address := w.bindEIP(w.onlyCLB())
	w.calls()
	for _, step := range []struct {
		name   string
		change func(*corev1.Service)
		reads  []string // of elastic addresses
		shown  []string
	}{
		{"asked for", func(svc *corev1.Service) {
			annotate(svc, annotation.ExternalIPType, "eip")
		}, []string{"DescribeEipAddresses"}, []string{address}},
		{"no call per pass", func(*corev1.Service) {}, nil, []string{address}},
		{"a host name wins", func(svc *corev1.Service) {
			annotate(svc, annotation.Hostname, "web.example.com")
		}, nil, []string{"web.example.com"}},
		{"and goes", func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.Hostname))
		}, []string{"DescribeEipAddresses"}, []string{address}},
		{"not asked for", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.ExternalIPType)) }, nil, own},
	} {
		w.change("web", step.change)
		w.mustPass("web")
		reads := slices.DeleteFunc(w.calls(), func(action string) bool { return action != "DescribeEipAddresses" })
		if diff := cmp.Diff(step.reads, reads, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: reads (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.shown, w.shown("web")); diff != "" {
			t.Errorf("%s: shown (-want +got):\n%s", step.name, diff)
		}
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ExternalIPType, "eip") })
	w.mustPass("web")
	w.drift("web")
	w.calls()
	w.mustPass("web")
	if calls := w.calls(); !slices.Contains(calls, "DescribeEipAddresses") || len(writesOf(calls)) != 0 {
		t.Errorf("calls of the drift pass %v, want a new read of the elastic addresses and no write", calls)
	}
}

// TestNoElasticAddress: a Service whose CLB has none, or which may not read it, shows the CLB's address and says why.
func TestNoElasticAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault map[string]any
	}{
		{"none bound", nil},
		{"forbidden", map[string]any{"action": "DescribeEipAddresses", "code": "Forbidden.RAM", "status": 403, "times": 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			svc := testService("web", 80)
			annotate(svc, annotation.ExternalIPType, "eip")
			w := newWorld(t)
			threeNodes(w)
			if test.fault != nil {
				w.fault(test.fault)
			}
			w.put(svc)
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if err != nil || wait > eipWait {
				t.Errorf("Reconcile = %s, %v; want another read within %s", wait, err, eipWait)
			}
			if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, "Warning "+problem.ReasonFailedSetEIPAddress)
			}) {
				t.Errorf("events = %q, want %s", events, problem.ReasonFailedSetEIPAddress)
			}
			if shown := w.shown("web"); len(shown) != 1 || !strings.HasPrefix(shown[0], "10.") {
				t.Errorf("shown %v, want the CLB's own address", shown)
			}
			w.calls()
			w.mustPass("web")
			if calls, events := w.calls(), w.newEvents(); len(calls)+len(events) != 0 {
				t.Errorf("the next pass calls %v and emits %q", calls, events)
			}
		})
	}
}
