package nlb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// allow sets the tag that lets Services use a load balancer.
func (w *world) allow(id, value string) {
	w.t.Helper()
	testkit.Check(w.t,
		w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []alicloud.Tag{{Key: mark.TagAllow, Value: value}}))
}

func overriding(id string) *corev1.Service {
	return newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
		with(annotation.ForceOverrideListeners, "true"))
}

// TestReusePolicy: the policy and its tag decide which existing load balancers a Service may use, also once it is on one.
func TestReusePolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reuse   policy.Reuse
		allow   string
		allowed bool
	}{
		"default": {"", "", true}, "any": {policy.ReuseAny, "", true}, "off": {policy.ReuseOff, testCluster, false},
		"no tag": {policy.ReuseTagged, "", false}, "another cluster": {policy.ReuseTagged, "c2", false},
		"another namespace": {policy.ReuseTagged, "c1/team", false},
		"cluster":           {policy.ReuseTagged, testCluster, true}, "namespace": {policy.ReuseTagged, "c2,c1/def*", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.config.Policy.LoadBalancerReuse = test.reuse
				w.restart()
				id := w.existing("by-hand")
				if test.allow != "" {
					w.allow(id, test.allow)
				}
				w.calls()
				w.addNodes("n1")
				w.put(overriding(id))
				w.converge("web")
				if taken := len(w.listeners(id)) > 0; taken != test.allowed {
					t.Fatalf("taken: %v, want %v", taken, test.allowed)
				}
				if !test.allowed {
					mustReport(t, w.newEvents(), "LoadBalancerNotReusable", "may not be used")
					if got := writes(w.calls()); len(got) > 0 || len(w.get("web").Status.LoadBalancer.Ingress) > 0 {
						t.Errorf("writes %v, status %v, want none", got, w.get("web").Status.LoadBalancer)
					}
				}
				w.remove("web")
				w.converge("web")
				if got := w.listeners(id); len(got) > 0 || len(w.get("web").Finalizers) > 0 {
					t.Errorf("after the deletion: listeners %v, finalizers %v", got, w.get("web").Finalizers)
				}
			})
		})
	}
}

// TestLabelIsNoPermission: a label and a finalizer, which whoever can edit Services can set, give no load balancer to a Service that the
// policy keeps from it.
func TestLabelIsNoPermission(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.labelGivesNothing(func(svc *corev1.Service) {
			svc.Finalizers = []string{Finalizer}
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "by-hand"}}
		})
		// Whether there is such a load balancer, the author does not learn.
		mustReport(t, w.newEvents(), "SyncLoadBalancerFailed", string(annotation.ZoneMaps))
	})
}

// labelGivesNothing checks that a Service whose label names an existing load balancer that the policy keeps from it writes nothing, and
// returns its id.
func (w *world) labelGivesNothing(change ...func(*corev1.Service)) (id string) {
	w.t.Helper()
	w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
	w.restart()
	id = w.existing("by-hand")
	w.addNodes("n1")
	svc := newService("web", append(change, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.ForceOverrideListeners, "true"))...)
	svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
	w.put(svc)
	w.calls()
	_ = w.try("web")
	if got := writes(w.calls()); len(got) > 0 || len(w.listeners(id)) > 0 {
		w.t.Errorf("writes %v, listeners %v, want none", got, w.listeners(id))
	}
	return id
}

// TestReuseIsRevoked: a load balancer that loses the tag is left as it is, and by the deletion of its Service as it was before.
func TestReuseIsRevoked(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
		w.restart()
		id := w.existing("by-hand")
		w.allow(id, testCluster)
		w.addNodes("n1")
		w.put(overriding(id))
		w.converge("web")
		before := w.listeners(id)
		testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []string{mark.TagAllow}))
		w.later(settle)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.change("web", testkube.TCP(80, 81))
		w.calls()
		w.converge("web")
		if diff := cmp.Diff(before, w.listeners(id)); diff != "" {
			t.Errorf("after the tag went (-before +after):\n%s", diff)
		}
		mustReport(t, w.newEvents(), "LoadBalancerNotReusable")
		w.remove("web")
		w.converge("web")
		if got := w.listeners(id); len(got) > 0 {
			t.Errorf("after the deletion: listeners %v", got)
		}
	})
}

// TestAllowedIDs: annotations in a namespace name only what the rules allow.
func TestAllowedIDs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Policy.AllowedIDs = []policy.IDRule{{Namespaces: []string{"def*"}, IDs: []string{"vsw-*", "cert-1"}}}
		w.restart()
		w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
			with(annotation.AdditionalCertIDs, "cert-2"))
		mustReport(t, w.newEvents(), "InvalidAnnotation", `"cert-2" is not accepted in namespace default`)
		if got := w.balancers("web"); len(got) > 0 {
			t.Errorf("load balancers %v, want none: its only port has a certificate that the namespace may not use", got)
		}
	})
}
