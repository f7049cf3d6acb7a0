package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const webGate = backend.GatePrefix + "web"

// gatedPod makes a pod that waits for nothing but the gate of the Service.
func (w *world) gatedPod(name string) {
	w.t.Helper()
	_, err := w.kube.CoreV1().Pods(testkube.Namespace).Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testkube.Namespace, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Now()},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: webGate}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	testkit.Check(w.t, err)
}

// gate is the condition of a pod.
func (w *world) gate(name string) corev1.ConditionStatus {
	w.t.Helper()
	pod := testkit.Must(w.kube.CoreV1().Pods(testkube.Namespace).Get(w.t.Context(), name, metav1.GetOptions{}))(w.t)
	condition, _ := backend.PodCondition(pod, webGate)
	return condition.Status
}

// TestGoldenThrottling: a throttled read is tried again in the next second, a throttled write in the next minute, and the action of the
// same name of another product at once.
func TestGoldenThrottling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		call   func(w *world) error
		least  time.Duration
		most   time.Duration
	}{
		{"ListServerGroups", func(w *world) error {
			_, err := w.account.Client.ListNLBGroups(w.t.Context(), alicloud.NLBGroupQuery{})
			return err
		}, 0, 2 * time.Second},
		{"CreateServerGroup", func(w *world) error {
			_, _, err := w.account.Client.CreateNLBGroup(w.t.Context(),
				alicloud.NLBGroup{Name: "shop", Type: alicloud.NLBInstanceGroup, Protocol: alicloud.NLBTCP, VPCID: w.config.VPCID}, "shop")
			return err
		}, 10 * time.Second, 62 * time.Second},
	} {
		t.Run(test.action, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.later(time.Until(time.Now().Truncate(time.Minute).Add(80 * time.Second)))
				w.account.Fault(fmt.Sprintf(`{"product":"nlb","action":%q,"code":"Throttling.User","status":400,"times":1}`, test.action))
				start := time.Now()
				err := test.call(w)
				for ; err != nil; err = test.call(w) {
					if !alicloud.IsThrottled(err) || time.Since(start) > 5*time.Minute {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took < test.least || took > test.most {
					t.Errorf("it took %s, want %s to %s", took, test.least, test.most)
				}
			})
		})
	}
}

// TestGoldenThrottlingOfOneProduct: both products have an action TagResources; one that is throttled does not slow the other down.
func TestGoldenThrottlingOfOneProduct(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		client := w.account.Client
		clb := testkit.Must(client.CreateLoadBalancer(t.Context(),
			alicloud.LoadBalancer{Name: "clb", AddressType: alicloud.AddressIntranet, VPCID: w.config.VPCID, VSwitchID: "vsw-a"}, "clb"))(t)
		id := w.existing("nlb")
		tags := []alicloud.Tag{{Key: "a", Value: "1"}}
		w.account.Fault(`{"product":"nlb","action":"TagResources","code":"Throttling.User","status":400,"times":1}`)
		start := time.Now()
		if err := client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, tags); !alicloud.IsThrottled(err) {
			t.Errorf("the NLB is tagged: %v", err)
		}
		testkit.Check(t, client.TagLoadBalancer(t.Context(), clb.ID, tags))
		if took := time.Since(start); took > time.Second {
			t.Errorf("to tag a CLB took %s", took)
		}
	})
}

// TestGoldenLocks: every third write meets the lock of an operation that is under way. Everything comes all the same, and nobody hears of
// it.
func TestGoldenLocks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.account.Fault(`{"product":"nlb","action":"*","kind":"write","code":"Conflict.Lock","status":400,"probability":0.7,"seed":7,"times":0}`)
		w.serve(3, ports(tcpPort(80), tcpPort(443), udpPort(53)))
		w.change("web", with(annotation.IdleTimeout, "60"), with(annotation.Scheduler, "rr"), with(annotation.Name, "shop"))
		w.converge("web")
		if got := w.listeners(w.balancer("web").ID); len(got) != 3 || w.balancer("web").Name != "shop" {
			t.Errorf("listeners %v, name %s", got, w.balancer("web").Name)
		}
		if hits := w.account.FaultHits(); hits < 3 {
			t.Errorf("only %d writes met a lock", hits)
		}
		for _, event := range w.newEvents() {
			if strings.HasPrefix(event, "Warning") {
				t.Errorf("event %s", event)
			}
		}
		w.account.ClearFaults()
		w.quiet("web")
	})
}

// TestGoldenListsLag: lists show for three reads what was an hour ago: nothing. What is there stays, and nothing is made twice.
func TestGoldenListsLag(t *testing.T) {
	t.Parallel()
	begins := map[string]func(*world){"drift": (*world).drift, "restart": (*world).restart}
	for _, action := range []string{"ListLoadBalancers", "ListServerGroups", "ListListeners", "ListServerGroupServers"} {
		for name, begin := range begins {
			t.Run(action+", "+name, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.serve(2, testkube.TCP(80))
					id, group := w.balancer("web").ID, w.onlyGroup().ID
					w.calls()
					begin(w)
					w.account.Fault(fmt.Sprintf(`{"product":"nlb","action":%q,"stale":"1h","times":3}`, action))
					w.converge("web")
					w.account.ClearFaults()
					w.drift()
					w.converge("web")
					for _, call := range writes(w.calls()) {
						if !strings.Contains(call, "=") { // what the cloud refused changed nothing
							t.Errorf("%s was called", call)
						}
					}
					if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) ||
						w.onlyGroup().ID != group {
						t.Errorf("listeners %v, want %v", got, want)
					}
				})
			})
		}
	}
}

// TestGoldenForbidden: an action that the access key may not call is named once, however often it is tried.
func TestGoldenForbidden(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.account.Fault(`{"action":"CreateListener","code":"Forbidden.NoPermission","status":403,"times":0}`)
		w.put(newService("web", testkube.TCP(80)))
		for range 30 {
			wait, _ := w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // it is what the event says
			w.later(max(min(wait, soon), settle))
		}
		named := 0
		for _, event := range w.newEvents() {
			if strings.Contains(event, "CreateListener") {
				named++
			}
		}
		if named != 1 {
			t.Errorf("%d events name the action, want one", named)
		}
		w.account.ClearFaults()
		w.converge("web")
		w.quiet("web")
	})
}

// TestGoldenLockedByAnUnpaidBill: a locked load balancer gets no write, and the Service one event. Soon after it is unlocked, everything
// follows.
func TestGoldenLockedByAnUnpaidBill(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		id := w.balancer("web").ID
		w.account.SetNLBLocks(id, "FinancialLocked")
		w.drift()
		w.newEvents()
		w.calls()
		w.change("web", with(annotation.IdleTimeout, "60"))
		for range 10 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			w.later(max(min(wait, soon), settle))
		}
		events := w.newEvents()
		mustReport(t, events, "NLB "+id+" is locked (FinancialLocked): nothing is changed until the lock is gone")
		if calls := writes(w.calls()); len(calls) > 0 || len(events) != 1 || !strings.Contains(events[0], problem.ReasonLoadBalancerLocked) {
			t.Errorf("writes %v, events %v", calls, events)
		}
		w.account.SetNLBLocks(id)
		w.passes("web", 3*time.Minute)
		if got := *w.listener(id, 0).IdleTimeout; got != 60 {
			t.Errorf("idle timeout %d", got)
		}
		w.quiet("web")
	})
}
