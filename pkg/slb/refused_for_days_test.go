package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// A permanent refusal may cost so many calls that change something, and so many events, in a day.
const (
	refusedWrites = 30
	refusedEvents = 10
)

// refusedForDays are things that the cloud refuses for as long as nobody does anything about them.
func refusedForDays() map[string]struct {
	action, code string
	before       func(svc *corev1.Service)
	change       func(svc *corev1.Service)
} {
	type row = struct {
		action, code string
		before       func(svc *corev1.Service)
		change       func(svc *corev1.Service)
	}
	asIs := func(*corev1.Service) {}
	port := func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) }
	return map[string]row{
		"a listener":   {"CreateLoadBalancerTCPListener", "InvalidParameter", asIs, port},
		"no room":      {"CreateLoadBalancerTCPListener", "ListenerNumberOverLimit", asIs, port},
		"a permission": {"CreateVServerGroup", "Forbidden.RAM", asIs, port},
		"a setting": {"SetLoadBalancerTCPListenerAttribute", "InvalidParameter", asIs, func(svc *corev1.Service) {
			annotate(svc, annotation.Scheduler, "wlc")
		}},
		"an attribute": {"SetLoadBalancerName", "Forbidden.RAM", asIs, func(svc *corev1.Service) { annotate(svc, annotation.Name, "other") }},
		"a tag": {"TagResources", "Forbidden.RAM", asIs, func(svc *corev1.Service) {
			annotate(svc, annotation.AdditionalTags, "a=b")
		}},
		"another protocol": {"CreateLoadBalancerHTTPListener", "InvalidParameter", asIs, func(svc *corev1.Service) {
			annotate(svc, annotation.ProtocolPort, "http:80")
		}},
		"a range": {"AddAccessControlListEntry", "InvalidParameter", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = ranges(1) },
			func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = ranges(2) }},
		"a list": {"CreateAccessControlList", "OverQuota", asIs, func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = ranges(1)
		}},
		"a weight": {"SetVServerGroupAttribute", "Forbidden.RAM", asIs, func(svc *corev1.Service) {
			annotate(svc, annotation.DefaultWeight, "50")
		}},
		"a deletion": {"DeleteLoadBalancer", "Forbidden.RAM", asIs, deleteService},
		"a former port": {"DeleteLoadBalancerListener", "Forbidden.RAM", port, func(svc *corev1.Service) {
			svc.Spec.Ports = svc.Spec.Ports[:1]
		}},
		"a former group": {"DeleteVServerGroup", "RspoolVipExist", port, func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] }},
	}
}

// TestAPermanentRefusalCostsFewCalls: what the cloud refuses for a day is tried again and again, and ever more seldom. An edit has it tried
// at once, and so it is in line once the cloud takes it.
func TestAPermanentRefusalCostsFewCalls(t *testing.T) {
	t.Parallel()
	for name, test := range refusedForDays() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				svc := testService("web", 80)
				test.before(svc)
				w := settled(t, svc)
				w.fault(map[string]any{"action": test.action, "code": test.code, "status": 400, "times": 0})
				w.change("web", test.change)
				calls := w.passesOver("web", 24*time.Hour)
				refused := slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return call != test.action+"="+test.code })
				if writes := len(writesOf(calls)); writes > refusedWrites || len(refused) == 0 {
					t.Errorf("%d writes in a day, %d of them refused", writes, len(refused))
				}
				if events := w.newEvents(); len(events) > refusedEvents || len(events) == 0 {
					t.Errorf("%d events in a day: %q", len(events), events)
				}
				w.clearFaults()
				if w.get("web").DeletionTimestamp != nil || test.code == "RspoolVipExist" {
					w.passesOver("web", 7*time.Hour)
				} else {
					w.change("web", func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
				}
				w.settles("web")
			})
		})
	}
}

// TestARefusedCreationCostsFewCalls: the same where there is no CLB yet.
func TestARefusedCreationCostsFewCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "Forbidden.RAM", "status": 403, "times": 0})
		w.put(testService("web", 80))
		calls := w.passesOver("web", 24*time.Hour)
		if writes := len(writesOf(calls)); writes > refusedWrites || writes == 0 {
			t.Errorf("%d writes in a day", writes)
		}
		if events := w.newEvents(); len(events) > refusedEvents {
			t.Errorf("%d events in a day: %q", len(events), events)
		}
		w.clearFaults()
		w.passesOver("web", 3*time.Hour)
		if keys := w.listenerKeys(); !slices.Equal(keys, []string{"tcp:80"}) {
			t.Errorf("listeners %v", keys)
		}
	})
}

// TestAnEditTriesARefusedReplacementAgain: whoever edits a Service expects to see what comes of it, whatever the annotation is.
func TestAnEditTriesARefusedReplacementAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := settled(t, testService("web", 80))
		w.fault(map[string]any{"action": "CreateLoadBalancerHTTPListener", "code": "InvalidParameter", "status": 400, "times": 0})
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProtocolPort, "http:80") })
		w.passesOver("web", 3*time.Hour)
		w.clearFaults()
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Name, "other") })
		w.mustPass("web")
		if listeners := w.state()["other"].Listeners; listeners["http:80"] == nil {
			t.Errorf("listeners %v, want the new one", listeners)
		}
	})
}

// TestATagIsRemovedOnce: a tag that left the annotation is not removed again and again while something else of the Service fails.
func TestATagIsRemovedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := testService("web", 80)
		annotate(svc, annotation.AdditionalTags, "team=a")
		w := settled(t, svc)
		w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InvalidParameter", "status": 400, "times": 0})
		w.addNode("d")
		w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.AdditionalTags)) })
		calls := w.passesOver("web", 24*time.Hour)
		if n := len(slices.DeleteFunc(calls, func(call string) bool { return !strings.HasPrefix(call, "UntagResources") })); n != 1 {
			t.Errorf("%d calls that remove tags, want one", n)
		}
	})
}
