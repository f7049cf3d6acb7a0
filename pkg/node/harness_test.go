package node

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

const (
	testRegion = emulatortest.Region
	testVPC    = emulatortest.VPC
)

func TestMain(m *testing.M) {
	testkube.RoomForWatchers()
	testkube.ErrorsDoNotWait()
	goleak.VerifyTestMain(m)
}

// account is an emulated cloud and the real client that reaches it.
type account struct {
	*testcloud.Account
	t *testing.T
}

func newAccount(t *testing.T, opts emulator.Options) *account {
	t.Helper()
	return &account{testcloud.New(t, opts), t}
}

// put adds running instances i-0, i-1, … with addresses 10.1.0.10, … .
func (a *account) put(n int) []emulator.Instance {
	a.t.Helper()
	var all []emulator.Instance
	for i := range n {
		instance, err := a.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{})
		if err != nil {
			a.t.Fatal(err)
		}
		all = append(all, instance)
	}
	return all
}

// cluster is a node cache that a test fills by hand, and the provider over it.
type cluster struct {
	*Instances
	t      *testing.T
	nodes  informers.SharedInformerFactory
	events *record.FakeRecorder
}

func newCluster(t *testing.T, opts Options) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: informers.NewSharedInformerFactory(fake.NewClientset(), 0), events: record.NewFakeRecorder(1000)}
	if opts.Region == "" {
		opts.Region = testRegion
	}
	if opts.VPCID == "" {
		opts.VPCID = testVPC
	}
	opts.Nodes, opts.Recorder = c.nodes.Core().V1().Nodes(), c.events
	c.Instances = NewInstances(opts)
	return c
}

// join adds the Nodes of instances and returns them.
func (c *cluster) join(instances []emulator.Instance, with ...func(*corev1.Node)) []*corev1.Node {
	c.t.Helper()
	var nodes []*corev1.Node
	for _, instance := range instances {
		nodes = append(nodes, nodeOf(instance, with...))
	}
	c.add(nodes...)
	return nodes
}

func (c *cluster) add(nodes ...*corev1.Node) {
	c.t.Helper()
	for _, node := range nodes {
		if err := c.nodes.Core().V1().Nodes().Informer().GetIndexer().Add(node); err != nil {
			c.t.Fatal(err)
		}
	}
}

// eventReasons returns the reasons of the events so far.
func (c *cluster) eventReasons() []string {
	var reasons []string
	for _, event := range c.emitted() {
		reasons = append(reasons, strings.Fields(event)[1])
	}
	return reasons
}

// emitted returns the events so far with their messages.
func (c *cluster) emitted() []string {
	var events []string
	for len(c.events.Events) > 0 {
		events = append(events, <-c.events.Events)
	}
	return events
}

// nodeOf returns a Node object of the instance, not ready unless said otherwise.
func nodeOf(instance emulator.Instance, with ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-" + instance.ID, UID: types.UID("uid-" + instance.ID), ResourceVersion: "1",
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{ProviderID: testRegion + "." + instance.ID},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: instance.PrivateIP}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now()}},
		},
	}
	for _, change := range with {
		change(node)
	}
	return node
}

func withProviderID(id string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Spec.ProviderID = id }
}

func withLabel(key, value string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels[key] = value }
}

func isReady(node *corev1.Node) { testkube.Ready(node).Status = corev1.ConditionTrue }

func tainted(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
}
