package nlb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// runManager runs a controller over the nodes n1 to n3 and returns what stops it. No write may say that a node gets no connections while it
// does.
func (w *world) runManager(change ...func(*service.Options)) (stop func()) {
	w.t.Helper()
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	opts := w.options(w.account.Client)
	for _, f := range change {
		f(&opts)
	}
	controller := testkit.Must(service.NewController(opts, service.NewReconciler(opts)))(w.t)
	ctx, cancel := context.WithCancel(w.t.Context())
	done, factory := make(chan struct{}), w.factory
	factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
		factory.Shutdown()
	}
}

// sends reports whether a server group has a node with a weight, whatever jobs are still to do.
func (w *world) sends(node *corev1.Node) bool {
	for _, group := range testkit.Must(w.account.Client.ListNLBGroups(w.t.Context(), alicloud.NLBGroupQuery{}))(w.t) {
		for _, s := range testkit.Must(w.account.Client.ListNLBServers(w.t.Context(), group.ID))(w.t) {
			if s.Weight > 0 && (s.ID == testkube.InstanceOf(node.Name) || s.IP != "" && s.IP == nodes.InternalIP(node)) {
				return true
			}
		}
	}
	return false
}

// checkTraffic fails the test if a condition says that a node gets no connections while it does, and returns the reasons as they are written.
func (w *world) checkTraffic() (written func() []string) {
	var reasons []string
	w.kube.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchAction) //nolint:errcheck // it is one
		var change corev1.Node
		testkit.Check(w.t, json.Unmarshal(patch.GetPatch(), &change))
		condition := nodes.Condition(&change, service.ConditionTraffic)
		if condition == nil {
			return false, nil, nil
		}
		reasons = append(reasons, patch.GetName()+" "+condition.Reason)
		node := testkit.Must(w.factory.Core().V1().Nodes().Lister().Get(patch.GetName()))(w.t)
		if condition.Status == corev1.ConditionFalse && w.sends(node) {
			w.t.Errorf("%s is said to get no new connections (%s), and gets some", patch.GetName(), condition.Reason)
		}
		return false, nil, nil
	})
	return func() []string {
		now := reasons
		reasons = nil
		slices.Sort(now)
		return now
	}
}

func (w *world) reasonOf(name string) string {
	w.t.Helper()
	node := testkit.Must(w.kube.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{}))(w.t)
	if condition := nodes.Condition(node, service.ConditionTraffic); condition != nil {
		return condition.Reason
	}
	return ""
}

func (w *world) createNodes(change ...func(*corev1.Node)) {
	w.t.Helper()
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		w.account.Put(testkube.InstanceOf(name), "{}")
		node := testkube.Node(name, change...)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}}
		testkit.Must(w.kube.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{}))(w.t)
	}
}

// TestNodeIsOutOnceJobsEnd: the job that sets the weight of a node to 0 is under way, fails, or does not end.
func TestNodeIsOutOnceJobsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault, meanwhile string
		change           []func(*corev1.Service)
	}{
		"jobs end":     {meanwhile: "Draining"},
		"by addresses": {meanwhile: "Draining", change: []func(*corev1.Service){with(annotation.ServerGroupType, alicloud.NLBIPGroup)}},
		"jobs fail":    {fault: `{"times":0,"action":"UpdateServerGroupServersAttribute","job":"failed"}`},
		"jobs hang":    {fault: `{"times":0,"action":"UpdateServerGroupServersAttribute","job":"stuck"}`},
		"refused":      {fault: `{"times":0,"action":"UpdateServerGroupServersAttribute","code":"Forbidden","status":403}`},
		"lost":         {fault: `{"times":0,"action":"UpdateServerGroupServersAttribute","drop":"before"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				written := w.checkTraffic()
				w.createNodes()
				w.put(newService("web", append(test.change, testkube.TCP(80))...))
				stop := w.runManager()
				w.later(5 * time.Minute)
				if got := written(); !slices.Equal(got, []string{"n1 Serving", "n2 Serving", "n3 Serving"}) {
					t.Errorf("at the start: %v", got)
				}
				if test.fault != "" {
					w.account.Fault(test.fault)
				}
				testkube.ChangeNode(t, w.kube, "n1", testkube.Taint(nodes.TaintToBeDeleted))
				w.later(20 * time.Second)
				if got := w.reasonOf("n1"); test.meanwhile != "" && got != test.meanwhile || test.meanwhile == "" && got == "Draining" {
					t.Errorf("n1 is %s after 20 s", got)
				}
				w.later(5 * time.Minute)
				if got := w.reasonOf("n1"); test.meanwhile == "" && got == "Draining" {
					t.Error("n1 is Draining although no job has taken it out")
				}
				w.account.ClearFaults()
				w.later(20 * time.Minute)
				want := "Draining"
				if name == "jobs hang" { // for good: the cloud goes on to say that it is at work on the server
					want = "NotConfirmed"
				}
				if got := w.reasonOf("n1"); got != want || w.reasonOf("n2") != "Serving" {
					t.Errorf("n1 is %s in the end, n2 %s", got, w.reasonOf("n2"))
				}
				if got := written(); len(got) > 4 || slices.ContainsFunc(got, func(s string) bool { return !strings.HasPrefix(s, "n1 ") }) {
					t.Errorf("written %v", got)
				}
				stop()
			})
		})
	}
}

// TestPodsAreNoNodes: where pods are the backends, no Node has the condition: a node with pods is drained by their eviction.
func TestPodsAreNoNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		written := w.checkTraffic()
		w.createNodes()
		slice := slice1("10.0.0.1@n1", "10.9.1.1@n2") // one with the network of its node
		testkit.Must(w.kube.DiscoveryV1().EndpointSlices(slice.Namespace).Create(t.Context(), slice, metav1.CreateOptions{}))(t)
		w.put(newService("web", testkube.TCP(80), testkube.Annotation(annotation.BackendType, alicloud.BackendENI),
			with(annotation.ServerGroupType, alicloud.NLBIPGroup)))
		stop := w.runManager()
		w.later(5 * time.Minute)
		if got := w.serversOf("web"); len(got) == 0 {
			t.Log("servers", got)
		}
		if got := written(); len(got) > 0 {
			t.Errorf("written %v", got)
		}
		stop()
	})
}

// TestForeignLoadBalancers: where another program may serve some of the Services, no Node says anything, because nobody knows of all load
// balancers; what this one has said before goes.
func TestForeignLoadBalancers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.checkTraffic()
		w.createNodes()
		w.put(newService("web", testkube.TCP(80)))
		stop := w.runManager()
		w.later(5 * time.Minute)
		if w.reasonOf("n1") != "Serving" {
			t.Errorf("n1 is %q", w.reasonOf("n1"))
		}
		stop()
		w.put(testkube.Service("other", testkube.TCP(81), func(svc *corev1.Service) { svc.Finalizers = []string{"example.com/other"} }))
		stop = w.runManager(func(opts *service.Options) {
			opts.Elsewhere = []driver.Product{{Name: "other", Finalizer: "example.com/other"}}
		})
		w.later(5 * time.Minute)
		if got := w.reasonOf("n1"); got != "" {
			t.Errorf("n1 is %s", got)
		}
		stop()
	})
}
