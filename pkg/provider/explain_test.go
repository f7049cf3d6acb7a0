package provider

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// explained returns the explanation of the Service web after passes over it, made by a provider that is wired like the real one.
func explained(t *testing.T, server cloudServer, passes int, query ExplainQuery, objects ...runtime.Object) (found Explanation, err error) {
	t.Helper()
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	withCloud(t, server, config, Settings{}, func(ctx context.Context, cloud *Cloud) {
		for range passes {
			svc := testkit.Must(cloud.kube.CoreV1().Services(testkube.Namespace).Get(ctx, "web", metav1.GetOptions{}))(t)
			testkit.Must(cloud.engines.services.Reconcile(ctx, svc))(t)
		}
		before := server.Last()
		testkit.Eventually(t, "the cache has what the passes wrote", func(context.Context) bool {
			svc, err := cloud.engines.serviceOptions.Services.Lister().Services(testkube.Namespace).Get("web")
			return err == nil && (passes == 0 || meta.FindStatusCondition(svc.Status.Conditions, service.ConditionSynced) != nil)
		})
		query.Namespace, query.Service = testkube.Namespace, "web"
		found, err = cloud.Explain(ctx, query)
		for _, call := range server.Calls(before) {
			if call.Kind == "write" {
				t.Errorf("explaining wrote: %s", call.Action)
			}
		}
	}, objects...)
	return found, err
}

// fleet are machines of the emulator and their Nodes.
func fleet(server cloudServer, nodes ...*corev1.Node) []runtime.Object {
	var objects []runtime.Object
	for _, node := range nodes {
		server.Put(testkube.InstanceOf(node.Name), `{}`)
		objects = append(objects, node)
	}
	return objects
}

// reasonOf returns the state and the reason of a backend.
func reasonOf(all []service.BackendState, name string) string {
	at := slices.IndexFunc(all, func(b service.BackendState) bool { return b.Name == name })
	if at < 0 {
		return "missing"
	}
	return strings.TrimSuffix(all[at].State+": "+all[at].Reason, ": ")
}

// TestExplainSaysWhyANodeIsOut: for every node there is one reason, whatever leaves it out.
func TestExplainSaysWhyANodeIsOut(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	objects := fleet(server,
		testkube.Node("good"), testkube.Node("labeled", testkube.NodeLabel("node.kubernetes.io/exclude-from-external-load-balancers", "")),
		testkube.Node("leaving", testkube.Taint("ToBeDeletedByClusterAutoscaler")),
		testkube.Node("elsewhere", testkube.ProviderID("cn-beijing.i-elsewhere")),
		testkube.Node("broken", testkube.NotReady(metav1.Now().Add(-1e12))),
		testkube.Node("control-plane", testkube.NodeLabel("node-role.kubernetes.io/master", "")),
		testkube.Node("new", testkube.Taint("node.cloudprovider.kubernetes.io/uninitialized")),
		testkube.Node("strange", testkube.ProviderID("aws:///i-1")),
	)
	svc := testkube.Service("web", testkube.TCP(80))
	found, err := explained(t, server, 1, ExplainQuery{}, append(objects, svc)...)
	testkit.Check(t, err)
	for name, want := range map[string]string{
		"good":          "in",
		"labeled":       "out: the label node.kubernetes.io/exclude-from-external-load-balancers excludes it",
		"leaving":       "out: it is about to go: the taint ToBeDeletedByClusterAutoscaler",
		"elsewhere":     `out: the provider ID names another region: "cn-beijing", the cluster is in "cn-hangzhou"`,
		"broken":        "out: it is not ready",
		"control-plane": "out: the label node-role.kubernetes.io/master makes it a control-plane node (--control-plane-nodes=auto)",
		"new":           "out: it is not initialized: it has the taint node.cloudprovider.kubernetes.io/uninitialized",
		"strange":       `out: the provider ID is not of Alibaba Cloud ECS: "aws:///i-1"`,
	} {
		if got := reasonOf(found.Nodes, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !found.Empty() {
		t.Errorf("not in sync: %s", found)
	}
	text := found.String()
	for _, want := range []string{
		"Service default/web: CLB lb-", "it is the Service's own: its owner tag has the UID of the Service",
		"and the label service.k8s.alibaba/loadbalancer-id names it",
		"  in sync", "tcp:80  running, 1 of 1 backend registered", "in   1 node  good (i-good)",
		"1 of 50 listeners that a CLB can have (slb_quota_listeners_num; value: the Quota Center)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	if _, err := json.Marshal(found); err != nil {
		t.Error(err)
	}
}

// TestExplainLocal: with externalTrafficPolicy Local, the endpoints decide; a pod takes part by its node.
func TestExplainLocal(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	objects := fleet(server, testkube.Node("a"), testkube.Node("b"),
		testkube.Node("c", testkube.NodeLabel("service.alibabacloud.com/exclude-node", "")))
	svc := testkube.Service("web", testkube.TCP(80), testkube.LocalTraffic)
	slice := testkube.EndpointSlice("web", svc.Spec.Ports[0], "10.244.1.1@a", "?10.244.2.1@b", "10.244.3.1@c")
	for i, name := range []string{"web-a", "web-b", "web-c"} {
		slice.Endpoints[i].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: testkube.Namespace, Name: name}
	}
	objects = append(objects, svc, slice)
	found, err := explained(t, server, 1, ExplainQuery{}, objects...)
	testkit.Check(t, err)
	for name, want := range map[string]string{
		"a": "in", "b": "out: externalTrafficPolicy is Local, and no ready endpoint of the Service is on it",
		"c": "out: the label service.alibabacloud.com/exclude-node excludes it",
	} {
		if got := reasonOf(found.Nodes, name); got != want {
			t.Errorf("node %s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"web-a": "in: its node is a backend", "web-b": "out: the endpoint is not ready",
		"web-c": "out: its node is out: the label service.alibabacloud.com/exclude-node excludes it",
	} {
		if got := reasonOf(found.Pods, name); got != want {
			t.Errorf("pod %s: %q, want %q", name, got, want)
		}
	}
	one, err := explained(t, server, 0, ExplainQuery{Pod: "web-c"}, objects...)
	testkit.Check(t, err)
	if len(one.Pods) != 1 || one.Pods[0].Name != "web-c" {
		t.Errorf("only the pod web-c: %+v", one.Pods)
	}
	stranger, err := explained(t, server, 0, ExplainQuery{Pod: "other"}, objects...)
	testkit.Check(t, err)
	if got := reasonOf(stranger.Pods, "other"); !strings.HasPrefix(got, "out: no EndpointSlice of the Service names the pod") {
		t.Errorf("a pod of another Service: %q", got)
	}
	if _, err := explained(t, server, 0, ExplainQuery{Node: "nowhere"}, objects...); err == nil ||
		!strings.Contains(err.Error(), "Node nowhere does not exist") {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// TestExplainPods: addresses of pods are backends of an NLB, each with its reason.
func TestExplainPods(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	zones := testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps", "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b")
	svc := testkube.Service("web", testkube.TCP(80), testkube.Class(nlb.Class), zones,
		testkube.Annotation("service.beta.kubernetes.io/backend-type", "eni"))
	slice := testkube.EndpointSlice("web", svc.Spec.Ports[0], "10.1.9.9@a", "192.168.7.7@a", "?10.1.9.8@a")
	found, err := explained(t, server, 0, ExplainQuery{}, append(fleet(server, testkube.Node("a")), svc, slice)...)
	testkit.Check(t, err)
	for name, want := range map[string]string{
		"10.1.9.9": "out: no network interface of the VPC has the address", "192.168.7.7": "out: the address is outside of the VPC",
		"10.1.9.8": "out: the endpoint is not ready",
	} {
		if got := reasonOf(found.Pods, name); got != want {
			t.Errorf("pod %s: %q, want %q", name, got, want)
		}
	}
	if found.Empty() || len(found.Steps) == 0 || !strings.Contains(found.String(), "Service default/web: no NLB: the Service has none yet") {
		t.Errorf("before the first pass:\n%s", found)
	}
}

// TestExplainWhereTheCloudRefuses: the reason has the code and the request ID, and nodes have theirs all the same.
func TestExplainWhereTheCloudRefuses(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	objects := fleet(server, testkube.Node("a"), testkube.Node("b", testkube.NodeLabel("service.alibabacloud.com/exclude-node", "")))
	named := testkube.Service("web", testkube.TCP(80),
		testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id", "lb-nowhere"))
	found, err := explained(t, server, 0, ExplainQuery{}, append(objects, named)...)
	testkit.Check(t, err)
	text := found.String()
	for _, want := range []string{"names lb-nowhere, which the Service does not use yet", "! not everything could be read or planned",
		"the label service.alibabacloud.com/exclude-node excludes it"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	if found.Empty() {
		t.Error("it looks as if all were well")
	}
	failed := testkube.Service("web", testkube.TCP(80))
	failed.Status.Conditions = []metav1.Condition{{
		Type: service.ConditionSynced, Status: metav1.ConditionFalse, Reason: "SyncLoadBalancerFailed",
		Message: "create CLB: CreateLoadBalancer: OverQuota, request 4711",
	}}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: testkube.Namespace, Name: "e"}, Type: corev1.EventTypeWarning, Reason: "QuotaReached",
		Message:        "no more CLBs",
		InvolvedObject: corev1.ObjectReference{UID: failed.UID}, LastTimestamp: metav1.Now(),
	}
	found, err = explained(t, server, 0, ExplainQuery{}, append(objects, failed, event)...)
	testkit.Check(t, err)
	text = found.String()
	for _, want := range []string{"not in sync: SyncLoadBalancerFailed: create CLB: CreateLoadBalancer: OverQuota, request 4711",
		"ago: QuotaReached: no more CLBs", "create load balancer"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
}

// TestExplainOthers: a Service of another controller says so.
func TestExplainOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"spec.type is ClusterIP": func(svc *corev1.Service) {
			svc.Spec.Type = corev1.ServiceTypeClusterIP
		},
		`spec.loadBalancerClass "example.com/lb" is that of another`:       testkube.Class("example.com/lb"),
		"the annotation service.beta.kubernetes.io/class leaves it to ano": testkube.Annotation("service.beta.kubernetes.io/class", "other"),
	} {
		found, err := explained(t, startCloud(t), 0, ExplainQuery{}, testkube.Service("web", testkube.TCP(80), change))
		testkit.Check(t, err)
		if !strings.HasPrefix(found.String(), "Service default/web: no load balancer: "+name) {
			t.Errorf("want %q:\n%s", name, found)
		}
	}
}
