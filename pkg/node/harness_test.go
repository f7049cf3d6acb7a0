package node

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	testRegion = "cn-hangzhou"
	testVPC    = "vpc-emulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// account is an emulated cloud and the real client that reaches it in the same process, so that it also works inside a
// synctest bubble.
type account struct {
	*emulator.Emulator
	t       *testing.T
	handler http.Handler
	client  *alicloud.Client
}

func newAccount(t *testing.T, opts emulator.Options) *account {
	t.Helper()
	e, err := emulator.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	a := &account{Emulator: e, t: t, handler: e.Handler()}
	a.client = a.clientOf("emulator", "emulator-secret")
	return a
}

func (a *account) clientOf(id, secret string) *alicloud.Client {
	a.t.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: alicloud.StaticCredentials{AccessKeyID: id, AccessKeySecret: secret},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "emulator.test", VPC: "emulator.test", ECS: "emulator.test"},
		Transport: direct{a.handler},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// direct is a transport into a handler of the same process.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("connection closed without an answer")
		}
	}()
	recorder := httptest.NewRecorder()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	d.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// fault injects a fault as the emulator's admin API describes it.
func (a *account) fault(rule string) {
	a.t.Helper()
	a.admin(http.MethodPost, "/_emulator/faults", rule)
}

func (a *account) admin(method, path, body string) {
	a.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.RemoteAddr = "127.0.0.1:1"
	recorder := httptest.NewRecorder()
	a.handler.ServeHTTP(recorder, request)
	if recorder.Code/100 != 2 {
		a.t.Fatalf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
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

// count returns how often the action arrived after the call numbered since.
func (a *account) count(action string, since int64) int {
	n := 0
	for _, call := range a.Calls(since) {
		if call.Action == action {
			n++
		}
	}
	return n
}

func (a *account) last() int64 {
	calls := a.Calls(0)
	if len(calls) == 0 {
		return 0
	}
	return calls[len(calls)-1].Seq
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

func (c *cluster) add(nodes ...*corev1.Node) {
	c.t.Helper()
	for _, node := range nodes {
		if err := c.nodes.Core().V1().Nodes().Informer().GetIndexer().Add(node); err != nil {
			c.t.Fatal(err)
		}
	}
}

// told returns the reasons of the events so far.
func (c *cluster) told() []string {
	var reasons []string
	for {
		select {
		case event := <-c.events.Events:
			reasons = append(reasons, strings.Fields(event)[1])
		default:
			return reasons
		}
	}
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
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}},
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

func isReady(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionTrue }

func tainted(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
}
