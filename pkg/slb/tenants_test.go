package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// claiming makes a Service that has the label of a CLB and the finalizer, as anybody can write them, and no annotation.
func claiming(id string) *corev1.Service {
	svc := reusing("web", id, "true", 443)
	delete(svc.Annotations, key(annotation.LoadBalancerID))
	svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
	svc.Finalizers = []string{"service.k8s.alibaba/resources"}
	return svc
}

// TestReusePolicy: the policy decides whether a Service uses the CLB that its annotation names. For the label, see [TestLabelUsesNothing].
func TestReusePolicy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reuse   policy.Reuse
		allow   string
		allowed bool
	}{
		{"", "", true}, {policy.ReuseAny, "", true},
		{policy.ReuseTagged, "", false}, {policy.ReuseTagged, "c2", false}, {policy.ReuseTagged, "c1/team", false},
		{policy.ReuseTagged, "c1", true}, {policy.ReuseTagged, "c2/default,c1/def*", true},
		{policy.ReuseOff, "c1", false},
	} {
		t.Run(strings.Join([]string{string(test.reuse), test.allow}, " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.config.Policy.LoadBalancerReuse = test.reuse
			w.restart()
			tags := []alicloud.Tag{{Key: mark.TagReused, Value: "true"}}
			if test.allow != "" {
				tags = append(tags, alicloud.Tag{Key: mark.TagAllow, Value: test.allow})
			}
			lb := w.makeCLB(tags...)
			w.makeListener(lb.ID, 443, "by hand")
			before := w.state()
			w.put(reusing("web", lb.ID, "true", 443))
			_ = w.pass("web")
			listener := w.state()["mine"].Listeners["tcp:443"]["Description"]
			if taken := listener == "k8s/443/web/default/c1"; taken != test.allowed {
				t.Errorf("listener %v, taken: %v, want %v", listener, taken, test.allowed)
			}
			if test.allowed {
				return
			}
			if diff := cmp.Diff(before, w.state()); diff != "" || len(w.get("web").Status.LoadBalancer.Ingress) != 0 {
				t.Errorf("status %v, cloud (-before +after):\n%s", w.get("web").Status.LoadBalancer, diff)
			}
			if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerNotReusable) {
				t.Errorf("events = %s, want one %s", events, problem.ReasonLoadBalancerNotReusable)
			}
			w.change("web", deleteService)
			w.mustPass("web")
			if diff := cmp.Diff(before, w.state()); diff != "" || len(w.get("web").Finalizers) != 0 {
				t.Errorf("after the tear-down (-before +after):\n%s", diff)
			}
		})
	}
}

// TestReuseIsRevoked: on a CLB that loses the tag, a Service gets no further port. What it has there follows its nodes and its ports.
func TestReuseIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
	w.restart()
	lb := w.makeCLB(alicloud.Tag{Key: mark.TagAllow, Value: testCluster})
	w.put(reusing("web", lb.ID, "true", 80))
	w.mustPass("web")
	if err := w.api.UntagLoadBalancer(t.Context(), lb.ID, []string{mark.TagAllow}); err != nil {
		t.Fatal(err)
	}
	w.deleteNode("c")
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) })
	_ = w.pass("web")
	if got, keys := w.state()["mine"].serving("tcp:80"), w.listenerKeys(); !slices.Equal(got, []string{"i-a 100", "i-b 100"}) ||
		!slices.Equal(keys, []string{"tcp:80"}) {
		t.Errorf("after the tag went: port 80 leads to %v, listeners %v", got, keys)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[1:] })
	_ = w.pass("web")
	if keys := w.listenerKeys(); len(keys) != 0 {
		t.Errorf("listeners %v once the Service has only a new port", keys)
	}
}

// TestAttributesOfAnOwnersCLB: a Service that does not manage the listeners of an existing CLB changes no attribute and no tag of it.
func TestAttributesOfAnOwnersCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB(alicloud.Tag{Key: "owner", Value: "platform"})
	svc := reusing("web", lb.ID, "false", 80)
	annotate(svc, annotation.Name, "evil")
	annotate(svc, annotation.DeleteProtection, "on")
	annotate(svc, annotation.ModificationProtection, alicloud.ConsoleProtection)
	annotate(svc, annotation.AdditionalTags, "owner=evil,team=evil")
	w.put(svc)
	w.mustPass("web")
	after := w.lb(lb.ID)
	after.Tags, lb.Tags = slices.DeleteFunc(after.Tags, func(tag alicloud.Tag) bool {
		return tag.Key == mark.TagReused
	}), []alicloud.Tag{{Key: "owner", Value: "platform"}}
	got := []any{after.Name, after.DeleteProtection, after.ModificationProtection, after.Tags}
	if diff := cmp.Diff([]any{"mine", "off", "NonProtection", lb.Tags}, got); diff != "" {
		t.Errorf("CLB of somebody else (-want +got):\n%s", diff)
	}
}

// TestTagsOfAnOwnersCLB: tags that an existing CLB had before are neither overwritten nor removed, those that the annotation added go with
// it.
func TestTagsOfAnOwnersCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB(alicloud.Tag{Key: "owner", Value: "platform"}, alicloud.Tag{Key: "same", Value: "1"})
	svc := reusing("web", lb.ID, "true", 80)
	annotate(svc, annotation.AdditionalTags, "owner=evil,same=1,team=a")
	w.put(svc)
	w.mustPass("web")
	want := map[string]string{mark.TagReused: "true", "owner": "platform", "same": "1", "team": "a"}
	if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "tags owner are not set") {
		t.Errorf("events = %s, want one that names the tag", events)
	}
	w.restart()
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.AdditionalTags, "team=b") })
	w.mustPass("web")
	want["team"] = "b"
	if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, annotation.ForceOverrideListeners, "false")
		annotate(svc, annotation.AdditionalTags, "team=c")
	})
	w.mustPass("web")
	if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
		t.Errorf("after a change without override (-want +got):\n%s", diff)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ForceOverrideListeners, "true") })
	w.mustPass("web")
	want["team"] = "c"
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.AdditionalTags)) })
	w.mustPass("web")
	delete(want, "team")
	if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
		t.Errorf("without the annotation (-want +got):\n%s", diff)
	}
}

// TestAddressOfAnOwnersCLB: a Service that may use an existing CLB shows its address at once, although its owner's listeners do not lead to
// it yet, as with an NLB and with the official CCM. Who may not use it shows nothing.
func TestAddressOfAnOwnersCLB(t *testing.T) {
	t.Parallel()
	for _, reuse := range []policy.Reuse{policy.ReuseAny, policy.ReuseOff} {
		w := newWorld(t)
		threeNodes(w)
		w.config.Policy.LoadBalancerReuse = reuse
		w.restart()
		lb := w.makeCLB()
		w.makeListener(lb.ID, 443, "by hand")
		w.put(reusing("web", lb.ID, "false", 443))
		_ = w.pass("web")
		var want []corev1.LoadBalancerIngress
		if reuse == policy.ReuseAny {
			want = []corev1.LoadBalancerIngress{{IP: lb.Address}}
		}
		if diff := cmp.Diff(want, w.get("web").Status.LoadBalancer.Ingress); diff != "" {
			t.Errorf("reuse %s: status (-want +got):\n%s", reuse, diff)
		}
	}
}

// TestLentCLBStaysItsOwners: a CLB with the tag that lets Services use it is never one that was made for a Service, although its owner's
// tool has removed the tag that says so, and the Service no longer names it.
func TestLentCLBStaysItsOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
	w.restart()
	lb := w.makeCLB(alicloud.Tag{Key: mark.TagAllow, Value: testCluster})
	w.makeListener(lb.ID, 9000, "by hand")
	w.put(reusing("web", lb.ID, "true", 80))
	w.mustPass("web")
	if err := w.api.UntagLoadBalancer(t.Context(), lb.ID, []string{mark.TagReused}); err != nil {
		t.Fatal(err)
	}
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Annotations, key(annotation.LoadBalancerID))
		svc.Finalizers = nil // whoever can edit Services can remove it
	})
	w.restart()
	_ = w.pass("web")
	if tags := w.state()["mine"].Tags; tags[mark.TagOwner] != "" {
		t.Errorf("the CLB has become the Service's: %v", tags)
	}
	w.change("web", deleteService)
	_ = w.pass("web")
	if listener := w.state()["mine"].Listeners["tcp:9000"]; listener == nil {
		t.Errorf("what is left: %v", w.state())
	}
}

// TestAllowedIDs: annotations in a namespace name only what the rules allow.
func TestAllowedIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.config.Policy.AllowedIDs = []policy.IDRule{{Namespaces: []string{"def*"}, IDs: []string{"acl-1"}},
		{Namespaces: []string{"other"}, IDs: []string{"*"}}}
	w.restart()
	svc := secured("")
	annotate(svc, annotation.ACLStatus, "on")
	annotate(svc, annotation.ACLType, "white")
	annotate(svc, annotation.ACLID, testACL)
	w.put(svc)
	w.mustPass("web")
	if keys := w.listenerKeys(); slices.Contains(keys, "https:443") {
		t.Errorf("listeners %v, want none with a certificate that the namespace may not use", keys)
	}
	events := strings.Join(w.newEvents(), "\n")
	if !strings.Contains(events, problem.ReasonInvalidAnnotation) || !strings.Contains(events, testCertificate) ||
		strings.Contains(events, testACL+`" is not`) {
		t.Errorf("events = %s, want one about the certificate only", events)
	}
}

// TestTwinNodeChangesNoWeight: a second Node with the provider ID of another, which says that its machine is about to go, changes nothing
// of the instance's backend servers, and the next pass writes nothing either.
func TestTwinNodeChangesNoWeight(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"cluster": func(*corev1.Service) {},
		"local":   func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			change(svc)
			w.putSlice(testSlice(svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@b"))
			w.put(svc)
			w.mustPass("web")
			w.calls()
			w.putNode(testNode("0-twin", taintedBy(nodes.TaintToBeDeleted), func(node *corev1.Node) {
				node.Spec.ProviderID, node.CreationTimestamp = testRegion+".i-a", metav1.Now()
			}))
			for range 2 {
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("writes %v, want none", writes)
				}
			}
			if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "0-twin (a is older)") {
				t.Errorf("events = %s, want one about the twin", events)
			}
		})
	}
}
