//go:build linux && real

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/clouds"
)

// spell is how long nothing may go while something is wrong: twice as long as a released instance's Node stays.
const spell = 5 * time.Second

// goOn lets the machines run for a time. Real machines have no clock that a test can set, and what must not happen gives no condition to
// wait for.
func goOn(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // see above

// story is a cluster whose manager gets wrong answers, with requests under way all the time.
type story struct {
	*testing.T
	*manager
	watch   *watch
	pairs   []*stream // from each of the two machines to a pod on the other
	web     *stream   // from the internet
	service string    // the address of the load balancer
	table   string    // a custom route table
}

// TestNothingIsLost lets the manager meet what has cost other clusters their nodes and routes, one after the other: a route table deleted
// while nodes join, keys that are not its own, wrong answers of the whole cloud while kubelets are silent, an API server without Nodes. No
// Node that has a machine and no route that works is lost at any time, and no request between pods fails.
func TestNothingIsLost(t *testing.T) {
	s := newStory(t)
	s.trap("a route table is deleted while nodes join", s.tableDeleted)
	s.trap("the cloud-config is cut off", s.configCutOff)
	s.trap("key of another account", s.strangersKey)
	s.trap("kubelets fall silent", s.silence)
	for i, answer := range clouds.Answers(t, sandbox.url, "*") {
		// Late answers take too long here; light nodes have them. A half that its count calls all cannot be seen, but for a proof of
		// minutes; the manager here waits one second.
		if answer.Least == 0 && !strings.Contains(answer.Name, "counted as") {
			s.trap(answer.Name, func(t *testing.T) {
				if i == 0 {
					s.release(t, 3, 4)
				}
				s.lead(t, answer.URL, answer.Faults...)
				s.asks(t, 1)
				goOn(spell)
			})
		}
	}
	s.trap("two machines are really gone", s.scaleIn)
	s.trap("a new manager sees nothing", s.replaced)
	s.nothingLost(t)
}

// TestRoutesOutliveTheirNodes lets two of four machines be released while the cloud hides it: their Nodes go, and then their routes. Then
// the API server loses all Nodes, and gets them back one by one: no route goes, and no request between pods fails.
func TestRoutesOutliveTheirNodes(t *testing.T) {
	s := newStory(t)
	s.trap("a route table is deleted while nodes join", s.tableDeleted)
	s.trap("kubelets fall silent", s.silence)
	s.trap("permission taken away", func(t *testing.T) {
		s.release(t, 3, 4)
		s.lead(t, s.denied)
		s.asks(t, 1)
		goOn(spell)
	})
	s.trap("two machines are really gone", func(t *testing.T) {
		s.scaleIn(t)
		s.firstRouteGoes(t)
	})
	s.trap("a new manager sees nothing", s.replaced)
	s.trap("an API server without Nodes gets them back one by one", s.emptied)
	s.nothingLost(t)
}

// nothingLost says what was lost in all.
func (s *story) nothingLost(t *testing.T) {
	t.Helper()
	for _, requests := range s.pairs {
		requests.wantNone()
	}
	s.watch.report(t)
}

// replaced kills the manager, and starts another one that sees no instance, and then one that sees them again. The second one does not see
// the load balancer either and makes another one in that cloud: it must end before its calls lead to the own cloud, which would have two of
// them.
func (s *story) replaced(t *testing.T) {
	s.kill(t)
	s.lead(t, s.denied)
	s.start(t)
	s.asks(t, 5)
	goOn(spell)
	s.kill(t)
	s.lead(t, sandbox.url)
	s.start(t)
	s.asks(t, 5)
}

// newStory starts the manager and waits until the pods reach each other over its routes.
func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{T: t, manager: newManager(t)}
	t.Cleanup(func() { order(t, http.MethodDelete, "/_emulator/faults", "") })
	dropRoutes(t)
	answer, err := cluster.Call(t.Context(), sandbox.url, api.VersionVPC, "CreateRouteTable",
		map[string]string{"VpcId": "vpc-emulator", "RouteTableName": "pods"})
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		RouteTableID string `json:"RouteTableId"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		t.Fatal(err)
	}
	s.table = made.RouteTableID
	t.Cleanup(func() { s.deleteTable(context.WithoutCancel(t.Context())) })
	s.configure(t, cluster.AccessKeyID, cluster.AccessKeySecret, systemTable+","+s.table)
	s.start(t)
	t.Cleanup(func() { s.end(t) })

	apply(t, pods)
	apply(t, serviceOf("kept", "{port: 80, targetPort: 8080}", "", ""))
	// The Service is deleted while the cloud is honest: a cloud without load balancers would have its own left behind.
	t.Cleanup(func() { s.lead(t, sandbox.url) })
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	s.service = vipOf(t, "kept")
	answers(t, at(t, internetClient), "http://"+s.service)
	byNode := podsByNode(t)
	for _, way := range [][2]int{{1, 2}, {2, 1}} {
		from, to := inPod(t, byNode[nodeName(way[0])]), "http://"+byNode[nodeName(way[1])].Status.PodIP+":8080"
		answers(t, from, to)
		s.pairs = append(s.pairs, from.stream(t, to))
	}
	s.web = at(t, internetClient).stream(t, "http://"+s.service)
	s.watch = newWatch(t)
	s.watch.expect(t, nodeName(1), nodeName(2))
	return s
}

// trap lets something happen, and says what it has cost.
func (s *story) trap(name string, happen func(t *testing.T)) {
	s.Helper()
	type count struct{ sent, failed int }
	counts := func() (all []count) {
		for _, requests := range append(slices.Clone(s.pairs), s.web) {
			sent, failed := requests.soFar()
			all = append(all, count{sent, failed})
		}
		return all
	}
	before := counts()
	nodes, routes := s.watch.now(name)
	s.Run(name, func(t *testing.T) {
		happen(t)
		lostNodes, lostRoutes := s.watch.now(name)
		after := counts()
		sent, failed := 0, 0
		for i := range s.pairs {
			sent, failed = sent+after[i].sent-before[i].sent, failed+after[i].failed-before[i].failed
		}
		t.Logf("%s: %d Nodes and %d routes lost, %d of %d requests between pods failed, %d of %d from the internet", name, lostNodes-nodes,
			lostRoutes-routes,
			failed, sent, after[2].failed-before[2].failed, after[2].sent-before[2].sent)
		if lostNodes > nodes || lostRoutes > routes {
			t.Errorf("%d Nodes and %d routes were lost", lostNodes-nodes, lostRoutes-routes)
		}
	})
	if s.Failed() {
		s.FailNow()
	}
}

// tableDeleted lets two machines join while one of the managed route tables is deleted.
func (s *story) tableDeleted(t *testing.T) {
	for i, zone := range map[int]string{3: "vsw-a", 4: "vsw-b"} {
		s.Cleanup(func() { forget(s.T, i) })
		join(t, i, zone)
	}
	s.deleteTable(t.Context())
	for _, name := range []string{nodeName(3), nodeName(4)} {
		nodeIs(t, name, true)
		until(t, name+" has a network", func(ctx context.Context) string {
			n := node(t, name)
			if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionFalse
			}) {
				return fmt.Sprintf("its conditions are %+v", n.Status.Conditions)
			}
			return routeOf(ctx, t, n.Spec.PodCIDR, instanceOf(n))
		})
	}
	s.watch.expect(t, nodeName(1), nodeName(2), nodeName(3), nodeName(4))
	goOn(spell)
}

// configCutOff changes the cloud-config as a write does that is interrupted. The manager goes on with its key.
func (s *story) configCutOff(t *testing.T) {
	for _, content := range []string{"", `{"Global": {"accessKeyID": "ZW11bGF`, "{}"} {
		s.write(t, content)
		goOn(spell) // a changed file is read within five seconds
		s.asks(t, 2)
	}
}

// strangersKey puts the key of another account into the cloud-config, in which nothing of the cluster exists. The manager tries it, and
// goes on with its own.
func (s *story) strangersKey(t *testing.T) {
	const key = "stranger"
	stranger := clouds.Serve(t, clouds.Stranger(key, "secret"), "i-stranger1")
	s.gateway.LeadKey(t, key, stranger)
	s.configure(t, key, "secret", systemTable)
	asked := func(ctx context.Context, action string) string {
		if text, err := request(ctx, http.MethodGet, stranger+"/_emulator/calls", ""); err != nil || !strings.Contains(text, action) {
			return fmt.Sprintf("it is not (%v)", err)
		}
		return ""
	}
	until(t, "the key is tried", func(ctx context.Context) string { return asked(ctx, "Describe") })
	kubectl(t, "", "annotate", "service", "kept", annotations+"scheduler=wlc")
	s.asks(t, 2)
	goOn(2 * spell)
	if asked(t.Context(), "DescribeLoadBalancers") == "" {
		t.Error("the Service is compared with the other account")
	}
	if got := vipOf(t, "kept"); got != s.service {
		t.Errorf("the Service has the address %s instead of %s", got, s.service)
	}
	s.configure(t, cluster.AccessKeyID, cluster.AccessKeySecret, systemTable)
	goOn(spell)
	s.asks(t, 2)
}

// silence stops the kubelets of the two machines. Kubernetes then takes their pods for unready, so no load balancer has backends; the pods
// themselves run on.
func (s *story) silence(t *testing.T) {
	s.web.wantNone()
	for i := 1; i <= nodeCount; i++ {
		order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(i)+"/stop/kubelet", "")
		s.Cleanup(func() {
			order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(i)+"/start/kubelet", "")
			nodeIs(s.T, nodeName(i), true)
		})
	}
	for i := 1; i <= nodeCount; i++ {
		nodeIs(t, nodeName(i), false)
	}
	goOn(spell)
}

// release takes two machines away, while the cloud hides that. Their Nodes and routes may go from now on.
func (s *story) release(t *testing.T, instances ...int) {
	s.lead(t, s.denied)
	s.watch.expect(t, nodeName(1), nodeName(2))
	for _, i := range instances {
		order(t, http.MethodDelete, "/_emulator/instances/"+instanceID(i), "")
	}
	for _, i := range instances {
		nodeIs(t, nodeName(i), false)
	}
}

// scaleIn lets the cloud be itself again: it has released two of four machines. A third of the Nodes may go per interval, which is one.
func (s *story) scaleIn(t *testing.T) {
	s.lead(t, sandbox.url)
	left := func(ctx context.Context) (left []string) {
		for _, name := range []string{nodeName(3), nodeName(4)} {
			if _, err := sandbox.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err == nil {
				left = append(left, name)
			}
		}
		return left
	}
	var first time.Time
	until(t, "the Nodes of both go, one after the other", func(ctx context.Context) string {
		names := left(ctx)
		if len(names) < 2 && first.IsZero() {
			first = time.Now()
		}
		if len(names) > 0 {
			return fmt.Sprintf("%v are left", names)
		}
		return ""
	})
	if took := time.Since(first); took < 5*time.Second {
		t.Errorf("both Nodes went within %s", took)
	}
}

// firstRouteGoes waits until the route of the first of two Nodes is gone. That of the second waits for a proof, as the cap of a cluster of
// this size is one.
func (s *story) firstRouteGoes(t *testing.T) {
	t.Helper()
	until(t, "the route of the first one goes", func(ctx context.Context) string {
		if routes, err := routesOf(ctx, systemTable); err != nil || len(routes) > nodeCount+1 {
			return fmt.Sprintf("%v, %v", routes, err)
		}
		return ""
	})
}

// emptied deletes all Nodes with a machine behind the manager's back, which then sees them go at once like those of an API server that was
// restored without data, and makes them again one by one. What the API server knows of pods is left: their kubelets would end the pods.
func (s *story) emptied(t *testing.T) {
	s.lead(t, sandbox.url)
	s.asks(t, 5)
	s.watch.expectRoutesOnly()
	var saved []*corev1.Node
	s.signal(t, syscall.SIGSTOP)
	for i := 1; i <= nodeCount; i++ {
		n := node(t, nodeName(i))
		n.ResourceVersion, n.UID = "", ""
		saved = append(saved, n)
		if err := sandbox.client.CoreV1().Nodes().Delete(t.Context(), n.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(t, syscall.SIGCONT)
	s.asks(t, 5)
	goOn(spell)
	for _, n := range saved {
		if _, err := sandbox.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.asks(t, 5)
		goOn(spell)
	}
	s.watch.expect(t, nodeName(1), nodeName(2))
}

// deleteTable deletes the custom route table as a person does: entry by entry, faster than the manager makes them again.
func (s *story) deleteTable(ctx context.Context) {
	s.Helper()
	for deadline := time.Now().Add(eventDeadline); ; {
		routes, err := routesOf(ctx, s.table)
		for cidr, instance := range routes {
			_, err = cluster.Call(ctx, sandbox.url, api.VersionVPC, "DeleteRouteEntry",
				map[string]string{"RouteTableId": s.table, "DestinationCidrBlock": cidr, "NextHopId": instance})
		}
		if err == nil {
			_, err = cluster.Call(ctx, sandbox.url, api.VersionVPC, "DeleteRouteTable", map[string]string{"RouteTableId": s.table})
		}
		if err == nil || strings.Contains(err.Error(), "InvalidRouteTableId.NotFound") {
			return
		}
		if time.Now().After(deadline) {
			s.Errorf("the route table cannot be deleted: %v", err)
			return
		}
	}
}
