package provider

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// planned returns the plan of a cluster with the objects, made by a provider that is wired like the real one.
func planned(t *testing.T, server cloudServer, objects ...runtime.Object) Plan {
	t.Helper()
	return plannedWith(t, server, Settings{}, objects...)
}

// plannedWith does the same with settings of the command line.
func plannedWith(t *testing.T, server cloudServer, settings Settings, objects ...runtime.Object) (plan Plan) {
	t.Helper()
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	withCloud(t, server, config, settings, func(ctx context.Context, cloud *Cloud) {
		plan = testkit.Must(cloud.Plan(ctx))(t)
	}, objects...)
	return plan
}

// withCloud uses a provider that is wired like the real one, in a cluster with the objects.
func withCloud(
	t *testing.T, server cloudServer, config Config, settings Settings, use func(context.Context, *Cloud), objects ...runtime.Object,
) {
	t.Helper()
	settings.ClusterCIDRs = testkit.Must(vpcroute.ParseClusterCIDRs("10.244.0.0/16"))(t)
	cloud := New(config, server.environment(""))
	cloud.Configure(settings)
	kube := allowing(true, objects...)
	testkit.Check(t, cloud.Connect(t.Context(), kube))
	ctx, cancel := context.WithCancel(t.Context())
	cloud.ctx, cloud.kube = ctx, kube
	factory := informers.NewSharedInformerFactory(kube, 0)
	cloud.SetInformers(factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	use(ctx, cloud)
	cancel()
	factory.Shutdown()
}

func TestPlan(t *testing.T) {
	t.Parallel()
	server := startCloud(t)
	server.Put("i-1", `{"PrivateIpAddress": "10.1.0.9"}`)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1", PodCIDR: "10.244.3.0/24", PodCIDRs: []string{"10.244.3.0/24"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "0f2c3d4e-0000-4000-8000-000000000001"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{
			{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP},
		}},
	}
	plan := planned(t, server, node, service)
	text := plan.String()
	for _, want := range []string{"Service default/web", "create load balancer", "create listener: tcp:80",
		"create route 10.244.3.0/24 to i-1 in vtb-emulator"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
	if plan.Empty() {
		t.Error("the plan says that it is empty")
	}
	for _, call := range server.Calls(0) {
		if call.Kind == "write" {
			t.Errorf("planning wrote: %s", call.Action)
		}
	}
}

// TestPlanRefusesWrites: whatever a plan did by mistake, nothing would be written to the cloud.
func TestPlanRefusesWrites(t *testing.T) {
	t.Parallel()
	config := keys
	config.VPCID, config.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	withCloud(t, startCloud(t), config, Settings{}, func(ctx context.Context, cloud *Cloud) {
		testkit.Must(cloud.Plan(ctx))(t)
		if _, err := cloud.client.CreateLoadBalancer(ctx, alicloud.LoadBalancer{}, "token"); !errors.Is(err, alicloud.ErrPaused) {
			t.Errorf("a write after the plan: %v, want that it is refused", err)
		}
	})
}

// TestPlanOfAGroup: Services that share a load balancer which does not exist yet are planned with one of them, and the others say so.
func TestPlanOfAGroup(t *testing.T) {
	t.Parallel()
	grouped := testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-group", "edge")
	plan := planned(t, startCloud(t), testkube.Service("shop", testkube.TCP(81), grouped), testkube.Service("web", testkube.TCP(80), grouped))
	if text := plan.String(); strings.Count(text, "create load balancer") != 1 ||
		strings.Count(text, "\n  further steps follow once the load balancer exists\n") != 1 {
		t.Errorf("plan of a new group:\n%s", text)
	}
}

// TestPlanOfProducts: each Service is planned by the product that it asks for, and not at all where that product is switched off.
func TestPlanOfProducts(t *testing.T) {
	t.Parallel()
	zones := testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps", "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b")
	classic, network := testkube.Service("classic", testkube.TCP(80)), testkube.Service("network", testkube.TCP(80), testkube.Class(nlb.Class),
		zones)
	const ofCLB, ofNLB = "Service default/classic\n  create load balancer", "Service default/network\n  create NLB"
	for name, test := range map[string]struct {
		settings     Settings
		want, absent []string
	}{
		"both":        {want: []string{ofCLB, ofNLB}},
		"without NLB": {settings: Settings{WithoutNLB: true}, want: []string{ofCLB}, absent: []string{"network"}},
		"without CLB": {settings: Settings{WithoutCLB: true}, want: []string{ofNLB}, absent: []string{"classic"}},
		"neither":     {settings: Settings{WithoutCLB: true, WithoutNLB: true}, want: []string{"Nothing would be written."}},
	} {
		text := plannedWith(t, startCloud(t), test.settings, classic, network).String()
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the plan does not say %q:\n%s", name, want, text)
			}
		}
		for _, absent := range test.absent {
			if strings.Contains(text, absent) {
				t.Errorf("%s: the plan says %q:\n%s", name, absent, text)
			}
		}
	}
}

// TestPreviewOfBadService: a Service that cannot be planned hides no other, and the plan does not look empty.
func TestPreviewOfBadService(t *testing.T) {
	t.Parallel()
	named := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("0f2c3d4e-" + name)},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{
				{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP},
			}},
		}
	}
	bad, good := named("a-bad"), named("b-good")
	bad.Annotations = map[string]string{"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id": "lb-nowhere"}
	plan := planned(t, startCloud(t), bad)
	if len(plan.Services) != 1 || plan.Services[0].Error == "" || plan.Empty() {
		t.Errorf("plan of the bad Service: %+v", plan)
	}
	text := planned(t, startCloud(t), bad, good).String()
	for _, want := range []string{"Service default/a-bad\n", "  ! cannot be planned: ", "lb-nowhere",
		"Service default/b-good\n  create load balancer"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
}

func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	plan := planned(t, startCloud(t))
	if !plan.Empty() || !strings.HasSuffix(plan.String(), "\nNothing would be written.\n") ||
		!strings.Contains(plan.String(), "loadBalancerReuse any") {
		t.Errorf("plan of an empty cluster: %q", plan)
	}
}
