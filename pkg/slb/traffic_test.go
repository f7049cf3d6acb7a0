package slb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// draining is a world whose controller runs, and in which no Node may say that it gets no connections while it does.
type draining struct {
	*world
	stop func()
	// written are the conditions that were written, as "node Reason".
	written []string
	// refuse fails writes of conditions.
	refuse bool
	// instanceID is not nil where the IDs of instances are read as the program does.
	instanceID func(*corev1.Node) (string, error)
}

// inDraining runs a test with the nodes a, b and c and the Services.
func inDraining(t *testing.T, test func(*draining), services ...*corev1.Service) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &draining{world: newWorld(t)}
		d.kube.PrependReactor("patch", "nodes", d.check)
		for _, name := range []string{"a", "b", "c"} {
			d.createNode(name)
		}
		for _, svc := range services {
			d.put(svc)
		}
		d.start()
		d.wait(2 * time.Minute)
		d.want("a Serving", "b Serving", "c Serving")
		test(d)
		d.truth()
		d.stop()
	})
}

// start runs a process that remembers nothing.
func (d *draining) start() {
	d.t.Helper()
	d.factory = informers.NewSharedInformerFactory(d.kube, 0)
	d.restart()
	opts := d.options()
	if d.instanceID != nil {
		opts.InstanceID = d.instanceID
		d.Reconciler = service.NewReconciler(opts)
	}
	controller, err := service.NewController(opts, d.Reconciler)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	done, factory := make(chan struct{}), d.factory
	factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
	d.stop = func() {
		cancel()
		<-done
		factory.Shutdown()
	}
}

func (d *draining) wait(for_ time.Duration) {
	time.Sleep(for_)
	synctest.Wait()
	d.truth()
}

// check notes a condition that is written. One that says that a node gets no connections is true at that moment.
func (d *draining) check(action clienttesting.Action) (handled bool, result runtime.Object, err error) {
	patch, ok := action.(clienttesting.PatchAction)
	if !ok || patch.GetSubresource() != "status" || d.transport.isDead() {
		return false, nil, nil
	}
	var node corev1.Node
	if err := json.Unmarshal(patch.GetPatch(), &node); err != nil {
		d.t.Error(err)
	}
	condition := nodes.Condition(&node, service.ConditionTraffic)
	if condition == nil {
		return false, nil, nil
	}
	d.written = append(d.written, patch.GetName()+" "+condition.Reason)
	if d.refuse {
		return true, nil, errors.New("the API server does not answer")
	}
	if condition.Status == corev1.ConditionFalse && d.serves(patch.GetName()) {
		d.t.Errorf("%s is said to get no new connections (%s), and gets some", patch.GetName(), condition.Reason)
	}
	return false, nil, nil
}

// truth fails if a Node says that it gets no connections, and a CLB sends it some.
func (d *draining) truth() {
	d.t.Helper()
	if d.refuse { // nothing can be said
		return
	}
	for _, node := range d.nodes() {
		if c := nodes.Condition(node, service.ConditionTraffic); c != nil && c.Status == corev1.ConditionFalse && d.serves(node.Name) {
			d.t.Errorf("%s says that it gets no new connections (%s), and gets some", node.Name, c.Reason)
		}
	}
}

// serves reports whether a CLB sends new connections to a node.
func (d *draining) serves(node string) bool {
	for _, lb := range d.state() {
		for _, servers := range lb.Groups {
			if slices.ContainsFunc(servers, func(server string) bool {
				return strings.Contains(server, " i-"+node+":") && !strings.Contains(server, " weight 0 ")
			}) {
				return true
			}
		}
	}
	return false
}

func (d *draining) nodes() []*corev1.Node {
	list, err := d.kube.CoreV1().Nodes().List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	var all []*corev1.Node
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// want fails unless the Nodes have these reasons; one without the condition is not among them.
func (d *draining) want(want ...string) {
	d.t.Helper()
	var got []string
	for _, node := range d.nodes() {
		if condition := nodes.Condition(node, service.ConditionTraffic); condition != nil {
			got = append(got, node.Name+" "+condition.Reason)
			status := map[string]corev1.ConditionStatus{
				service.TrafficServing: corev1.ConditionTrue, service.TrafficNotConfirmed: corev1.ConditionUnknown,
				service.TrafficDraining: corev1.ConditionFalse, service.TrafficRemoved: corev1.ConditionFalse,
			}[condition.Reason]
			if condition.Status != status || condition.Message == "" || condition.LastTransitionTime.IsZero() {
				d.t.Errorf("%s has the condition %+v", node.Name, condition)
			}
		}
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("conditions %v, want %v", got, want)
	}
}

// wantWritten fails unless these conditions were written since the last time.
func (d *draining) wantWritten(want ...string) {
	d.t.Helper()
	if slices.Sort(d.written); !slices.Equal(d.written, want) {
		d.t.Errorf("written %v, want %v", d.written, want)
	}
	d.written = nil
}

func (d *draining) exclude(name string) {
	d.changeNode(name, labeled(corev1.LabelNodeExcludeBalancers, ""))
}

const leavingTaint = nodes.TaintToBeDeleted

func (d *draining) taint(name string) { d.changeNode(name, taintedBy(leavingTaint)) }
func (d *draining) untaint(name string) {
	d.changeNode(name, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// TestNodeDrains: a node is out once its weight is 0 on each CLB, one write says so, and another one that it is back.
func TestNodeDrains(t *testing.T) {
	inDraining(t, func(d *draining) {
		d.wantWritten("a Serving", "b Serving", "c Serving")
		d.taint("a")
		d.wait(5 * time.Second)
		d.want("a Draining", "b Serving", "c Serving")
		d.untaint("a")
		d.wait(5 * time.Second)
		d.want("a Serving", "b Serving", "c Serving")
		d.exclude("a")
		d.wait(5 * time.Second)
		d.want("a Removed", "b Serving", "c Serving")
		d.wantWritten("a Draining", "a Removed", "a Serving")
		d.createNode("d") // it never was a backend
		d.exclude("d")
		d.wait(time.Hour)
		d.wantWritten()
		d.stop()
		d.start()
		d.wait(time.Hour)
		d.wantWritten()
		d.want("a Removed", "b Serving", "c Serving")
	}, testService("web", 80), testService("shop", 81))
}

// TestOneOfSeveralDoesNotAnswer: a node is not out for as long as one of its CLBs refuses, or does not say, that its weight is 0.
func TestOneOfSeveralDoesNotAnswer(t *testing.T) {
	for name, rule := range map[string]map[string]any{
		"refused": {"action": "SetVServerGroupAttribute", "code": "InternalError", "status": 500},
		"lost":    {"action": "SetVServerGroupAttribute", "drop": "after"},
		"broken":  {"action": "SetVServerGroupAttribute", "drop": "before"},
	} {
		t.Run(name, func(t *testing.T) {
			inDraining(t, func(d *draining) {
				rule["times"], rule["after"] = 0, 1 // the second Service
				d.fault(rule)
				d.taint("a")
				d.wait(20 * time.Second) // what was lost, reads prove in the end
				if d.faultHits() == 0 {
					t.Fatal("the fault hit nothing")
				}
				if reasons := d.reasons("a"); slices.Contains([]string{"Draining", "Removed"}, reasons) {
					t.Errorf("a is %s although a CLB has not confirmed it", reasons)
				}
				d.clearFaults()
				d.wait(5 * time.Minute)
				d.want("a Draining", "b Serving", "c Serving")
			}, testService("web", 80), testService("shop", 81))
		})
	}
}

func (d *draining) reasons(name string) string {
	for _, node := range d.nodes() {
		if condition := nodes.Condition(node, service.ConditionTraffic); node.Name == name && condition != nil {
			return condition.Reason
		}
	}
	return ""
}

// TestLateAddition: a call that adds a node is carried out after the node was found to be in no group, once in the same process, and once
// after another one has begun.
func TestLateAddition(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restarts), func(t *testing.T) {
			inDraining(t, func(d *draining) {
				d.exclude("a")
				d.wait(5 * time.Second)
				d.want("a Removed", "b Serving", "c Serving")
				d.fault(map[string]any{"action": "AddVServerGroupBackendServers", "drop": "before"})
				d.changeNode("a", func(n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) })
				time.Sleep(1100 * time.Millisecond)
				synctest.Wait()
				if d.faultHits() == 0 {
					t.Fatal("the fault hit nothing")
				}
				if reason := d.reasons("a"); reason == "Removed" {
					t.Error("a call that may add a was not answered, and a says that it is out")
				}
				if restarts {
					d.stop()
				}
				d.exclude("a")
				if restarts {
					d.start()
				}
				d.wait(10 * time.Second)
				d.addByHand("a")
				if reason := d.reasons("a"); reason == "Removed" || reason == "Draining" {
					t.Errorf("a is %s before every call has ended", reason)
				}
				d.wait(3 * time.Minute)
				d.want("a Removed", "b Serving", "c Serving")
			}, testService("web", 80))
		})
	}
}

// addByHand carries out the call that adds a node, as the cloud may do late.
func (d *draining) addByHand(node string) {
	d.t.Helper()
	lbs, err := d.api.DescribeLoadBalancers(d.t.Context(), alicloud.LoadBalancerQuery{})
	if err != nil || len(lbs) != 1 {
		d.t.Fatalf("%d CLBs (%v), want one", len(lbs), err)
	}
	groups, err := d.api.DescribeVServerGroups(d.t.Context(), lbs[0].ID)
	if err != nil || len(groups) != 1 {
		d.t.Fatalf("%d groups (%v), want one", len(groups), err)
	}
	group, err := d.api.DescribeVServerGroup(d.t.Context(), groups[0].ID)
	if err != nil || len(group.Backends) == 0 {
		d.t.Fatalf("%d servers: %v", len(group.Backends), err)
	}
	server := group.Backends[0]
	server.ServerID = "i-" + node
	if err := d.api.AddBackends(d.t.Context(), group.ID, []alicloud.Backend{server}); err != nil {
		d.t.Fatal(err)
	}
}

// TestReadThatLags: a read, after a restart or not, shows the state before a node was added. The node leaves then, and is out only when it is.
func TestReadThatLags(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restarts), func(t *testing.T) {
			inDraining(t, func(d *draining) {
				d.createNode("d")
				d.wait(5 * time.Second)
				d.want("a Serving", "b Serving", "c Serving", "d Serving")
				d.fault(map[string]any{"action": "DescribeVServerGroupAttribute", "stale": "15s", "times": 2})
				if restarts {
					d.stop()
				}
				d.taint("d")
				if restarts {
					d.start()
				} else {
					d.drift("web")
				}
				d.wait(5 * time.Second)
				if d.faultHits() == 0 {
					t.Fatal("no read lags")
				}
				d.wait(5 * time.Minute)
				if reason := d.reasons("d"); reason != "Draining" && reason != "Removed" {
					t.Errorf("d is %s in the end", reason)
				}
			}, testService("web", 80))
		})
	}
}

// TestOutage: while the cloud or the API server is down, no Node is written that stays, whether the manager restarts or not, and at most one
// write says what is not known of one that leaves.
func TestOutage(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restarts), func(t *testing.T) {
			inDraining(t, func(d *draining) {
				d.exclude("c")
				d.wait(time.Minute)
				d.written = nil
				d.fault(map[string]any{"action": "*", "code": "ServiceUnavailable", "status": 503, "times": 0})
				if restarts {
					d.stop()
					d.start()
				}
				d.wait(time.Hour)
				d.want("a Serving", "b Serving", "c Removed")
				d.wantWritten()
				d.taint("a")
				d.wait(time.Hour)
				if restarts {
					d.want("a NotConfirmed", "b Serving", "c Removed")
					d.wantWritten("a NotConfirmed")
				} else { // it is known to get connections
					d.want("a Serving", "b Serving", "c Removed")
					d.wantWritten()
				}
				d.clearFaults()
				d.wait(10 * time.Minute)
				d.want("a Draining", "b Serving", "c Removed")
				d.written, d.refuse = nil, true
				d.untaint("a")
				d.wait(10 * time.Minute)
				if len(d.written) == 0 || len(d.written) > 30 {
					t.Errorf("%d writes while the API server refuses them", len(d.written))
				}
				d.refuse = false
				d.wait(20 * time.Minute)
				d.want("a Serving", "b Serving", "c Removed")
			}, testService("web", 80))
		})
	}
}

// TestRestartDuringAMove: the Service has moved, its former place serves on for a while, and a new process begins. A node that leaves is out
// once the former place is left, whether that follows its nodes or refuses to.
func TestRestartDuringAMove(t *testing.T) {
	for name, test := range map[string]struct {
		restarts, refuses bool
	}{"no restart": {}, "restart": {restarts: true}, "refusal": {restarts: true, refuses: true}} {
		t.Run(name, func(t *testing.T) {
			inDraining(t, func(d *draining) {
				d.moveGrace = 5 * time.Minute
				d.stop()
				d.start()
				d.wait(time.Minute)
				d.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "second") })
				d.wait(20 * time.Second)
				if n := len(d.state()); n != 2 {
					t.Fatalf("%d CLBs during the move, want two", n)
				}
				d.want("a Serving", "b Serving", "c Serving")
				if test.restarts {
					d.stop()
					d.start()
				}
				if test.refuses { // the new place has its turn first
					d.fault(map[string]any{"action": "SetVServerGroupAttribute", "code": "ServiceUnavailable", "status": 503, "times": 0, "after": 1})
				}
				d.taint("a")
				d.wait(90 * time.Second)
				d.want("a NotConfirmed", "b Serving", "c Serving")
				d.clearFaults()
				d.wait(10 * time.Minute)
				d.want("a Draining", "b Serving", "c Serving")
			}, grouped("web", "first", 80))
		})
	}
}

// TestKilledWhileNodesLeave: the process ends after each of the writes with which one node leaves and another one comes back.
func TestKilledWhileNodesLeave(t *testing.T) {
	for writes := 1; writes <= 5; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			inDraining(t, func(d *draining) {
				d.exclude("a")
				d.wait(time.Minute)
				d.want("a Removed", "b Serving", "c Serving")
				d.transport.mu.Lock()
				d.transport.limit = d.transport.writes + writes
				d.transport.mu.Unlock()
				d.changeNode("a", func(n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) })
				d.taint("b")
				time.Sleep(5 * time.Second) // nobody can ask the API server then
				d.stop()
				d.start()
				d.wait(2 * time.Second)
				d.exclude("a") // what the other process has begun is not wanted any more
				d.wait(10 * time.Minute)
				d.want("a Removed", "b Draining", "c Serving")
			}, testService("web", 80, 443), testService("shop", 81))
		})
	}
}

// TestOutOfSomeServices: a node is out where a label or a subset leaves it out, and when the last Service is gone that has it.
func TestOutOfSomeServices(t *testing.T) {
	chooser := testService("web", 80)
	inDraining(t, func(d *draining) {
		d.changeNode("a", labeled("pool", "x"))
		d.change("web", func(svc *corev1.Service) { annotate(svc, annotation.BackendLabel, "pool=x") })
		d.wait(5 * time.Second)
		d.want("a Serving", "b Removed", "c Removed")
		d.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.BackendLabel)) })
		d.wait(5 * time.Second)
		d.want("a Serving", "b Serving", "c Serving")
		d.change("web", func(svc *corev1.Service) { svc.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		d.wait(time.Minute)
		d.want("a Removed", "b Removed", "c Removed")
	}, chooser)
}

// TestExcludedNodeIsStillItsInstance: a label keeps the manager from a node, and a CLB that refuses to let it go sends to its instance.
func TestExcludedNodeIsStillItsInstance(t *testing.T) {
	inDraining(t, func(d *draining) {
		d.instanceID = func(node *corev1.Node) (string, error) {
			if label := nodes.ExclusionLabel(node); label != "" {
				return "", errors.New(label)
			}
			return testkube.InstanceID(node)
		}
		d.stop()
		d.start()
		d.wait(time.Minute)
		d.fault(map[string]any{"action": "RemoveVServerGroupBackendServers", "code": "Forbidden.RAM", "status": 403, "times": 0})
		d.changeNode("a", labeled(nodes.LabelExcludeNode, ""))
		d.wait(5 * time.Minute)
		d.want("a Serving", "b Serving", "c Serving")
		d.clearFaults()
		d.wait(10 * time.Minute)
		d.want("a Removed", "b Serving", "c Serving")
	}, testService("web", 80))
}

// TestNodeReturnsWithoutAPlan: a new process cannot read the listeners, so that the groups follow the nodes by their marks.
func TestNodeReturnsWithoutAPlan(t *testing.T) {
	inDraining(t, func(d *draining) {
		d.exclude("a")
		d.wait(time.Minute)
		d.want("a Removed", "b Serving", "c Serving")
		d.stop()
		d.fault(map[string]any{"action": "DescribeLoadBalancerListeners", "code": "ServiceUnavailable", "status": 503, "times": 0})
		d.changeNode("a", func(n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) })
		d.start()
		d.wait(5 * time.Minute)
		if !d.serves("a") {
			t.Fatal("a is not back")
		}
		d.clearFaults()
		d.wait(10 * time.Minute)
		d.want("a Serving", "b Serving", "c Serving")
	}, testService("web", 80))
}

// TestKilledBeforeItIsShown: a process ends once a new Service has its backends on an existing CLB, before the Service shows that. The next one
// cannot read the CLB at first.
func TestKilledBeforeItIsShown(t *testing.T) {
	inDraining(t, func(d *draining) {
		d.change("web", deleteService)
		d.wait(time.Minute)
		d.want("a Removed", "b Removed", "c Removed")
		lb := d.makeCLB()
		d.transport.mu.Lock()
		d.transport.limit = d.transport.writes + 4
		d.transport.mu.Unlock()
		d.put(reusing("shop", lb.ID, "true", 80))
		time.Sleep(5 * time.Second)
		d.stop()
		if !d.serves("a") {
			t.Fatal("a is no backend server yet")
		}
		d.fault(map[string]any{"action": "*", "code": "ServiceUnavailable", "status": 503, "times": 0})
		d.start()
		d.wait(10 * time.Minute)
		d.clearFaults()
		d.wait(10 * time.Minute)
		d.want("a Serving", "b Serving", "c Serving")
	}, testService("web", 80))
}

// TestHandedOver: a Service that another controller is to serve keeps its CLB as it is, with all of its backend servers.
func TestHandedOver(t *testing.T) {
	inDraining(t, func(d *draining) {
		d.config.TypeAnnotation = true
		d.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Type, "other") })
		d.stop()
		d.start()
		d.wait(5 * time.Minute)
		d.taint("a")
		d.wait(5 * time.Minute)
		d.want("a NotConfirmed", "b Serving", "c Serving")
		d.change("web", deleteService)
		d.wait(5 * time.Minute)
		d.want("a Removed", "b Removed", "c Removed")
	}, testService("web", 80))
}
