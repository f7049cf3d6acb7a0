package slb

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// testNow is the time of a build.
var testNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// buildCase is an input under construction.
type buildCase struct {
	svc    *corev1.Service
	nodes  []*corev1.Node
	slices []*discoveryv1.EndpointSlice
	config config.Config
	enis   map[string]string
}

func newBuildCase(ports ...int32) *buildCase {
	return &buildCase{
		svc: testService("web", ports...), config: config.Config{ClusterID: testCluster, VSwitchIDs: []string{"vsw-a"}},
		nodes: []*corev1.Node{testNode("a"), testNode("b")},
	}
}

func (c *buildCase) build() (*model.Model, []problem.Problem) {
	params, problems := annotation.Of(c.svc)
	model, more := build.Build(build.Input{
		Service: c.svc, Params: params, Config: c.config, ClusterID: c.config.ClusterID,
		Facts: backend.Facts{Nodes: backend.Nodes(c.nodes, testInstanceID, testNow), Slices: c.slices, Interfaces: c.enis},
	})
	return model, append(problems, more...)
}

// testSlice makes a slice with one ready endpoint per item "address@node"; a "!" in front makes it terminating, a "?" not
// ready, and no "@" leaves out the node.
func testSlice(port corev1.ServicePort, items ...string) *discoveryv1.EndpointSlice {
	return testkube.EndpointSlice("web", port, items...)
}

func labeled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func taintedBy(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key}) }
}

func notReady(n *corev1.Node)        { testkube.Ready(n).Status = corev1.ConditionUnknown }
func foreignProvider(n *corev1.Node) { n.Spec.ProviderID = "other://x" }

var testName = types.NamespacedName{Namespace: testNamespace, Name: "web"}
