package build_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestBackendsOfPodsWithNumbersOfTheirOwn: a named target port has another number in the pods of a new version; each is a
// backend server at its own.
func TestBackendsOfPodsWithNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := newFixture(80)
	eni(c.svc)
	c.svc.Spec.Ports[0].TargetPort = intstr.FromString("http")
	before, after := testkube.EndpointSlice("web", c.svc.Spec.Ports[0], "10.9.0.1@a"), testkube.EndpointSlice("web", c.svc.Spec.Ports[0],
		"10.9.0.2@a")
	before.Ports[0].Port, after.Ports[0].Port = ptr.To[int32](8080), ptr.To[int32](9090)
	c.slices = []*discoveryv1.EndpointSlice{before, after}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2"}
	model, problems := c.build()
	want := []string{"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:9090 weight 100"}
	if diff := cmp.Diff(want, backendLines(model)); diff != "" || len(problems) > 0 {
		t.Errorf("backend servers (-want +got), problems %v:\n%s", problems, diff)
	}
}

// TestVirtualNodesInPodMode: a pod on a virtual node is a backend server like any other, whether the node is ready or not.
func TestVirtualNodesInPodMode(t *testing.T) {
	t.Parallel()
	c := newFixture(80)
	eni(c.svc)
	c.nodes = append(c.nodes,
		testkube.Node("vk", testkube.NodeLabel(nodes.LabelType, nodes.TypeVirtualKubelet), testkube.ProviderID("other://x"), silentFor(time.Hour)))
	c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@vk")}
	c.enis = map[string]string{"10.9.0.1": "eni-1", "10.9.0.2": "eni-2"}
	model, _ := c.build()
	if diff := cmp.Diff([]string{"eni-1/10.9.0.1:8080 weight 100", "eni-2/10.9.0.2:8080 weight 100"}, backendLines(model)); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
}

// TestMixedGroup: nodes and pods of virtual nodes stand in one group, each with the state of its own; one pod whose
// interface is not known yet keeps no other out and takes nobody away.
func TestMixedGroup(t *testing.T) {
	t.Parallel()
	c := newFixture(80)
	c.nodes = append(c.nodes,
		testkube.Node("vk", testkube.NodeLabel(nodes.LabelType, nodes.TypeVirtualKubelet), testkube.ProviderID("other://x")))
	c.nodes[1] = testkube.Node("b", goesAway)
	c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@vk", "!10.9.0.3@vk",
		"10.9.0.4@vk")}
	c.enis = map[string]string{"10.9.0.2": "eni-2", "10.9.0.3": "eni-3"}
	model, problems := c.build()
	want := []string{
		"i-a:30080 weight 100", "eni-2/10.9.0.2:8080 weight 100",
		"draining i-b:30080 weight 0", "draining eni-3/10.9.0.3:8080 weight 0", "held [10.9.0.4]",
	}
	if diff := cmp.Diff(want, backendLines(model)); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{problem.ReasonSkipSyncBackends}, reasons(problems)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestNodeLabelsThatExclude: each of the four keeps a node out, whatever its value; that of Kubernetes does not with the value false.
func TestNodeLabelsThatExclude(t *testing.T) {
	t.Parallel()
	for _, label := range []string{corev1.LabelNodeExcludeBalancers, nodes.LabelExcludeBalancerAlpha, nodes.LabelExcludeNode,
		nodes.LabelExcludeNodeLegacy} {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal} {
			c := newFixture(80)
			c.svc.Spec.ExternalTrafficPolicy = policy
			value := "false"
			if label == corev1.LabelNodeExcludeBalancers {
				value = "true"
			}
			c.nodes[1] = testkube.Node("b", testkube.NodeLabel(label, value))
			c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0], "10.9.0.1@a", "10.9.1.1@b")}
			model, _ := c.build()
			if len(model.Groups[0].Backends) != 1 || model.Groups[0].Backends[0].ServerID != "i-a" {
				t.Errorf("%s, %s: backend servers %v, want i-a", label, policy, backendLines(model))
			}
		}
	}
}

// TestNoNodePorts: pods need none; with nodes, the port without one gets an event and the others are served.
func TestNoNodePorts(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"eni", "ecs"} {
		c := newFixture(80, 81)
		c.svc.Annotations[annotation.BackendType] = mode
		c.svc.Spec.AllocateLoadBalancerNodePorts = new(false)
		c.svc.Spec.Ports[0].NodePort = 0
		c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0], "10.9.0.1@a")}
		c.enis = map[string]string{"10.9.0.1": "eni-1"}
		model, problems := c.build()
		want := map[string][]string{"eni": {"tcp:80", "tcp:81"}, "ecs": {"tcp:81"}}[mode]
		if diff := cmp.Diff(want, listenerLines(model)); diff != "" {
			t.Errorf("%s: listeners (-want +got):\n%s", mode, diff)
		}
		if got := slices.Contains(reasons(problems), problem.ReasonFeatureNotSupported); got != (mode == "ecs") {
			t.Errorf("%s: problems %v", mode, problems)
		}
	}
}

func TestAddressFamilies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		change   func(*corev1.Service)
		families []corev1.IPFamily
		reasons  []string
	}{
		{"IPv4", func(*corev1.Service) {}, []corev1.IPFamily{corev1.IPv4Protocol}, nil},
		{"both", func(*corev1.Service) {}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, nil},
		{"IPv6 alone", func(*corev1.Service) {}, []corev1.IPFamily{corev1.IPv6Protocol}, []string{problem.ReasonFeatureNotSupported}},
		{"IPv6 backend servers", ipv6Backends, []corev1.IPFamily{corev1.IPv6Protocol}, nil},
		{"IPv6 backend servers of a Service without IPv6", ipv6Backends, []corev1.IPFamily{corev1.IPv4Protocol},
			[]string{problem.ReasonFeatureNotSupported}},
		{"IPv6 backend servers without a CLB of IPv6", func(svc *corev1.Service) {
			annotate(svc, annotation.BackendIPVersion, "ipv6")
		}, nil, []string{problem.ReasonAnnotationNoEffect}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80)
			test.change(c.svc)
			c.svc.Spec.IPFamilies = test.families
			c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0])}
			_, problems := c.build()
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}

func TestAnnotationsOfOtherModes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"label of nodes with pods": func(svc *corev1.Service) { eni(svc); annotate(svc, annotation.BackendLabel, "a=b") },
		"weight with Local": func(svc *corev1.Service) {
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			annotate(svc, annotation.DefaultWeight, "50")
		},
		"number of nodes with Local": func(svc *corev1.Service) {
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			annotate(svc, annotation.BackendSubset, "25")
		},
		"graceful shutdown of nodes": func(svc *corev1.Service) { annotate(svc, annotation.GracefulShutdown, "true") },
		"no graceful shutdown":       func(svc *corev1.Service) { eni(svc); annotate(svc, annotation.GracefulShutdown, "false") },
		"number of nodes with pods":  func(svc *corev1.Service) { eni(svc); annotate(svc, annotation.BackendSubset, "25") },
	} {
		c := newFixture(80)
		change(c.svc)
		c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0])}
		if _, problems := c.build(); !slices.Equal(reasons(problems), []string{problem.ReasonAnnotationNoEffect}) {
			t.Errorf("%s: problems %v, want one %s", name, problems, problem.ReasonAnnotationNoEffect)
		}
	}
}

// TestSubsetsWithLocal: the words have an effect with all backends: they say whether the quota of the CLB counts.
func TestSubsetsWithLocal(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"auto", "off"} {
		c := newFixture(80)
		c.svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		annotate(c.svc, annotation.BackendSubset, word)
		c.slices = []*discoveryv1.EndpointSlice{testkube.EndpointSlice("web", c.svc.Spec.Ports[0])}
		if _, problems := c.build(); len(problems) != 0 {
			t.Errorf("%s: problems %v, want none", word, problems)
		}
	}
}
