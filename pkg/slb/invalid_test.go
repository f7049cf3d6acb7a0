package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// joined makes a world with a Service on an existing CLB whose port 80 joins a group in which somebody else has a backend.
func joined(t *testing.T, change ...func(*corev1.Service)) (w *world, group string) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	group = w.makeGroup(lb.ID, "shared", "by hand")
	svc := joining("web", lb.ID, group+":80", 80)
	for _, f := range change {
		f(svc)
	}
	w.put(svc)
	w.converge("web")
	w.calls()
	w.newEvents()
	return w, group
}

// mustReport fails unless one Warning of the reason was emitted.
func (w *world) mustReport(reason string) {
	w.t.Helper()
	for _, event := range w.newEvents() {
		if strings.HasPrefix(event, "Warning "+reason) {
			return
		}
	}
	w.t.Errorf("no Warning %s", reason)
}

// TestInvalidVGroupPortMovesNoBackends: with a typo in vgroup-port, a port named twice, or a certificate that was removed by mistake
// the backends stay in the group of others, also after a restart; a new node joins them and one that is gone leaves.
func TestInvalidVGroupPortMovesNoBackends(t *testing.T) {
	t.Parallel()
	https := func(svc *corev1.Service) {
		annotate(svc, annotation.ProtocolPort, "https:80")
		annotate(svc, annotation.CertID, testCertificate)
	}
	for name, test := range map[string]struct {
		before func(*corev1.Service)
		change func(svc *corev1.Service, group string)
	}{
		"InvalidVGroupPort": {func(*corev1.Service) {}, func(svc *corev1.Service, group string) {
			annotate(svc, annotation.VGroupPort, group+":8o")
		}},
		"PortNamedTwice": {func(*corev1.Service) {}, func(svc *corev1.Service, group string) {
			annotate(svc, annotation.VGroupPort, group+":80,rsp-other:80")
		}},
		"InvalidCertTakesNoBackendsOut": {https, func(svc *corev1.Service, _ string) { delete(svc.Annotations, key(annotation.CertID)) }},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restarts), func(t *testing.T) {
				t.Parallel()
				w, group := joined(t, test.before)
				w.change("web", func(svc *corev1.Service) { test.change(svc, group) })
				if restarts {
					w.restart()
				}
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("writes %v", writes)
				}
				w.mustReport(problem.ReasonInvalidAnnotation)
				w.addNode("d")
				w.deleteNode("c")
				w.mustPass("web")
				want := []string{"i-a 100", "i-b 100", "i-d 100", "i-far 7"}
				if diff := cmp.Diff(want, short(w.state()["mine"].Groups["shared"])); diff != "" {
					t.Errorf("backends (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestInvalidWeightAfterRestart: a canary's share of 3 stays 3 while the annotation weight is not accepted.
func TestInvalidWeightAfterRestart(t *testing.T) {
	t.Parallel()
	w, _ := joined(t, func(svc *corev1.Service) { annotate(svc, annotation.Weight, "3") })
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Weight, "3%") })
	w.restart()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	w.addNode("d")
	w.mustPass("web")
	want := []string{"i-a 1", "i-b 1", "i-c 1", "i-d 1", "i-far 7"}
	if diff := cmp.Diff(want, short(w.state()["mine"].Groups["shared"])); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
}

// TestInvalidBackendLabelAfterRestart: nodes that might not have the label do not join, and those that are there stay while any node
// answers.
func TestInvalidBackendLabelAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addNode("a", labeled("pool", "web"))
	w.addNode("b", labeled("pool", "web"))
	w.addNode("other")
	svc := testService("web", 80)
	annotate(svc, annotation.BackendLabel, "pool=web")
	w.put(svc)
	w.converge("web")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.BackendLabel, "pool") })
	w.restart()
	group := func() []string { return short(w.state()["a0f5e8a1cweb"].Groups["k8s/30080/web/default/c1"]) }
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a 100", "i-b 100"}, group()); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	w.deleteNode("b")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a 100"}, group()); diff != "" {
		t.Errorf("backends without node b (-want +got):\n%s", diff)
	}
	w.deleteNode("a")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a 100"}, group()); diff != "" {
		t.Errorf("the last backend (-want +got):\n%s", diff)
	}
}

// TestInvalidBackendTypeAfterRestart: pods stay pods, and nodes stay nodes.
func TestInvalidBackendTypeAfterRestart(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{alicloud.BackendENI, alicloud.BackendECS} {
		w := newWorld(t)
		threeNodes(w)
		svc := testService("web", 80)
		svc.Annotations[annotation.BackendType] = kind
		w.putSlice(testSlice(svc.Spec.Ports[0], w.addressOf("i-a")+"@a"))
		w.put(svc)
		w.converge("web")
		stood := w.state()
		w.change("web", func(svc *corev1.Service) { svc.Annotations[annotation.BackendType] = "pods" })
		w.restart()
		w.mustPass("web")
		if diff := cmp.Diff(stood, w.state()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", kind, diff)
		}
	}
}

// TestInvalidListenerAnnotationsAfterRestart: listeners keep what they have, and certificates go on to rotate.
func TestInvalidListenerAnnotationsAfterRestart(t *testing.T) {
	t.Parallel()
	service := func() *corev1.Service {
		svc := fourProtocols()
		annotate(svc, annotation.ForwardPort, "80:443")
		annotate(svc, annotation.HealthyThreshold, "4")
		annotate(svc, annotation.ACLStatus, "on")
		annotate(svc, annotation.ACLType, "white")
		annotate(svc, annotation.ACLID, testACL)
		return svc
	}
	for _, suffix := range []annotation.Suffix{annotation.ProtocolPort, annotation.ForwardPort, annotation.HealthyThreshold,
		annotation.ACLStatus, annotation.ACLID} {
		t.Run(string(suffix), func(t *testing.T) {
			t.Parallel()
			w := settled(t, service())
			stood := w.state()
			w.change("web", func(svc *corev1.Service) { annotate(svc, suffix, "what?") })
			w.restart()
			w.mustPass("web")
			if diff := cmp.Diff(stood, w.state()); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.CertID, "cert-2") })
			w.calls()
			w.mustPass("web")
			if diff := cmp.Diff([]string{"SetLoadBalancerHTTPSListenerAttribute"}, writesOf(w.calls())); diff != "" {
				t.Errorf("writes for the new certificate (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInvalidSourceRangesStayClosed: a listener stays restricted while the ranges or an access control list are not accepted.
func TestInvalidSourceRangesStayClosed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"no block": func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/240"} },
		"replaced by an annotation with a typo": func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = nil
			annotate(svc, annotation.ACLStatus, "On")
			annotate(svc, annotation.ACLID, testACL)
			annotate(svc, annotation.ACLType, "white")
		},
		"both": func(svc *corev1.Service) {
			annotate(svc, annotation.ACLStatus, "on")
			annotate(svc, annotation.ACLID, testACL)
			annotate(svc, annotation.ACLType, "white")
		},
	} {
		for _, restarts := range []bool{false, true} {
			w := settled(t, restricted("192.0.2.0/24"))
			stood := w.state()
			w.change("web", func(svc *corev1.Service) {
				change(svc)
				svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
			})
			if restarts {
				w.restart()
			}
			w.mustPass("web")
			w.drift("web")
			w.mustPass("web")
			if diff := cmp.Diff(stood["a0f5e8a1cweb"].Listeners, w.state()["a0f5e8a1cweb"].Listeners); diff != "" {
				t.Errorf("%s, restart %v: listeners (-before +after):\n%s", name, restarts, diff)
			}
		}
	}
}

// TestBlockedChangeIsNotRecordedAsApplied: a wish that waits is not in the Record, and what was applied before stays in it.
func TestBlockedChangeIsNotRecordedAsApplied(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.HealthyThreshold, "4")
	annotate(svc, annotation.AdditionalTags, "a=1")
	w := settled(t, svc)
	before, _ := driver.RecordOn(w.get("web"))
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, annotation.HealthyThreshold, "99")
		annotate(svc, annotation.Scheduler, "best")
		annotate(svc, annotation.AdditionalTags, "aliyun=1")
	})
	w.restart()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
	after, _ := driver.RecordOn(w.get("web"))
	if diff := cmp.Diff(before, after, cmp.AllowUnexported(driver.Record{})); diff != "" {
		t.Errorf("Record (-before +after):\n%s", diff)
	}
}

// TestOneBadPortOfANewService: the CLB is created for the ports that nothing keeps from being served.
func TestOneBadPortOfANewService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := fourProtocols()
	annotate(svc, annotation.Cookie, "a b")
	delete(svc.Annotations, key(annotation.CertID))
	annotate(svc, annotation.Name, "1 bad name")
	w.put(svc)
	w.converge("web")
	var listeners []string
	for name := range w.state()["a0f5e8a1cweb"].Listeners {
		listeners = append(listeners, name)
	}
	if len(listeners) != 2 || len(w.get("web").Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("listeners %v, status %v", listeners, w.get("web").Status.LoadBalancer)
	}
	w.mustReport(problem.ReasonInvalidAnnotation)
}

// TestProtocolChangeWaitsForItsCertificate: the TCP listener serves until the https one can be created.
func TestProtocolChangeWaitsForItsCertificate(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 443))
	stood := w.state()
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProtocolPort, "https:443") })
	w.mustPass("web")
	if diff := cmp.Diff(stood, w.state()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestInvalidHostnameKeepsTheStatus: an address takes the place of the name only when the author of the Service asks for that.
func TestInvalidHostnameKeepsTheStatus(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.Hostname, "web.example.com")
	w := settled(t, svc)
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Hostname, "Web_example") })
	w.restart()
	w.mustPass("web")
	if got := w.get("web").Status.LoadBalancer.Ingress; len(got) != 1 || got[0].Hostname != "web.example.com" {
		t.Errorf("status %v", got)
	}
}

// TestEmptyAnnotationBlocksNothing: charts render empty values all the time.
func TestEmptyAnnotationBlocksNothing(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	for _, row := range annotation.Table() {
		if row.Suffix != annotation.AddressType {
			annotate(svc, row.Suffix, "")
		}
	}
	w := settled(t, svc)
	if got := w.get("web").Status.LoadBalancer.Ingress; len(got) != 1 {
		t.Errorf("status %v", got)
	}
	w.restart()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
}
