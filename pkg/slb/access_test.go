package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

const testListName = model.AccessListPrefix + "a0f5e8a1cweb"

// restricted makes a Service of one port that admits the ranges only.
func restricted(ranges ...string) *corev1.Service {
	svc := testService("web", 80)
	svc.Spec.LoadBalancerSourceRanges = ranges
	return svc
}

// entries returns those of the Service's list, nil when there is none.
func (w *world) entries() []string {
	w.t.Helper()
	return w.state()[testListName].Groups["entries"]
}

// closed returns the access control of the listeners.
func (w *world) closed() map[string]string {
	w.t.Helper()
	closed := map[string]string{}
	for key, listener := range w.state()["a0f5e8a1cweb"].Listeners {
		closed[key] = fmt.Sprint(listener["AclStatus"])
	}
	return closed
}

func TestSourceRanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(restricted("192.0.2.0/24", "198.51.100.7/32"))
	w.mustPass("web")
	want := []string{
		"DescribeLoadBalancers", "DescribeAccessControlLists", "CreateLoadBalancer", "CreateAccessControlList", "AddAccessControlListEntry",
		"CreateVServerGroup", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener",
	}
	if diff := cmp.Diff(want, w.calls()); diff != "" {
		t.Errorf("calls of the creation (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		name    string
		change  func(*corev1.Service)
		writes  []string
		entries []string
		closed  map[string]string
	}{
		{"unchanged", func(*corev1.Service) {}, nil, []string{"192.0.2.0/24", "198.51.100.7/32"}, map[string]string{"tcp:80": "on"}},
		{"changed", func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24", "203.0.113.0/24"}
		}, []string{"AddAccessControlListEntry", "RemoveAccessControlListEntry"}, []string{"192.0.2.0/24", "203.0.113.0/24"},
			map[string]string{"tcp:80": "on"}},
		{"second port", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) },
			[]string{"CreateVServerGroup", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener"},
			[]string{"192.0.2.0/24", "203.0.113.0/24"}, map[string]string{"tcp:80": "on", "tcp:81": "on"}},
		{"beside annotations", func(svc *corev1.Service) { annotate(svc, annotation.ACLStatus, "off") }, nil,
			[]string{"192.0.2.0/24", "203.0.113.0/24"}, map[string]string{"tcp:80": "on", "tcp:81": "on"}},
		{"annotations again gone", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.ACLStatus)) }, nil,
			[]string{"192.0.2.0/24", "203.0.113.0/24"}, map[string]string{"tcp:80": "on", "tcp:81": "on"}},
		{"open", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0"} },
			[]string{"SetLoadBalancerTCPListenerAttribute", "SetLoadBalancerTCPListenerAttribute"}, []string{"192.0.2.0/24", "203.0.113.0/24"},
			map[string]string{"tcp:80": "off", "tcp:81": "off"}},
		{"closed", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.1/24"} },
			[]string{"RemoveAccessControlListEntry", "SetLoadBalancerTCPListenerAttribute", "SetLoadBalancerTCPListenerAttribute"},
			[]string{"192.0.2.0/24"}, map[string]string{"tcp:80": "on", "tcp:81": "on"}},
	} {
		w.change("web", step.change)
		w.mustPass("web")
		if diff := cmp.Diff(step.writes, writesOf(w.calls())); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.entries, w.entries()); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.closed, w.closed()); diff != "" {
			t.Errorf("%s: access control (-want +got):\n%s", step.name, diff)
		}
	}
	w.restart()
	w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil })
	w.mustPass("web")
	if diff := cmp.Diff(map[string]string{"tcp:80": "off", "tcp:81": "off"}, w.closed()); diff != "" {
		t.Errorf("access control after the ranges went while the program was down (-want +got):\n%s", diff)
	}
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	if n := len(w.state()); n != 0 {
		t.Errorf("%d resources outlive the Service", n)
	}
}

func TestManySourceRanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := restricted()
	for i := range 120 {
		svc.Spec.LoadBalancerSourceRanges = append(svc.Spec.LoadBalancerSourceRanges, fmt.Sprintf("192.0.2.%d/32", i))
	}
	w.put(svc)
	w.mustPass("web")
	if n := len(slices.DeleteFunc(w.calls(), func(c string) bool { return c != "AddAccessControlListEntry" })); n != 3 ||
		len(w.entries()) != 120 {
		t.Errorf("%d calls for %d entries, want 3 for 120", n, len(w.entries()))
	}
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
}

// TestLostCLBOfARestrictedService: the list outlives the CLB and is used again.
func TestLostCLBOfARestrictedService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(restricted("192.0.2.0/24"))
	w.mustPass("web")
	w.removeCLB()
	w.drift("web")
	w.converge("web")
	if lists := slices.DeleteFunc(w.calls(), func(c string) bool { return c != "CreateAccessControlList" }); len(lists) != 1 {
		t.Errorf("%d lists were made, want one", len(lists))
	}
	if w.closed()["tcp:80"] != "on" {
		t.Error("the new CLB is open")
	}
	w.removeCLB()
	w.change("web", deleteService)
	w.mustPass("web")
	if n := len(w.state()); n != 0 {
		t.Errorf("%d resources are left", n)
	}
}

func TestSourceRangesOfReusedCLBs(t *testing.T) {
	t.Parallel()
	for _, override := range []string{"true", "false"} {
		t.Run(override, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := reusing("web", w.makeCLB().ID, override, 80)
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			w.put(svc)
			w.mustPass("web")
			if made := w.entries() != nil; made != (override == "true") {
				t.Errorf("a list was made: %v", made)
			}
			reported := strings.Contains(strings.Join(w.newEvents(), "\n"), problem.ReasonFeatureNotSupported)
			if reported != (override == "false") {
				t.Errorf("an event says that the ranges do nothing: %v", reported)
			}
			w.change("web", deleteService)
			w.mustPass("web")
			if w.entries() != nil {
				t.Error("the list outlives the Service")
			}
		})
	}
}
