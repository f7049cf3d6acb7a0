package nlb

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestPortErrorsInTheStatus: while a port is not served, and more than time is needed, the status says which and why; once all are served,
// it says nothing of ports. A Service without any served port shows no address.
func TestPortErrorsInTheStatus(t *testing.T) {
	t.Parallel()
	other := func(w *world, port int32) {
		w.change("other", func(svc *corev1.Service) { svc.Spec.Ports = nil }, testkube.TCP(port))
		w.converge("other")
	}
	// refuse has each call after the first one fail, settled none any more.
	refuse := func(w *world, how string) { w.account.Fault(`{"after":1,"times":0,` + how + `}`) }
	settled := func(w *world) { w.account.ClearFaults() }
	// closed lets the Service have port 80, and then a security group that the cloud refuses with the next port. opened takes that back.
	closed := func(w *world, how string) {
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
		w.converge("web")
		if how != "" {
			w.account.Fault(`{"times":0,"action":"LoadBalancerJoinSecurityGroup",` + how + `}`)
		}
		w.change("web", testkube.TCP(81), with(annotation.SecurityGroupIDs, "sg-none"))
	}
	opened := func(w *world) {
		w.account.ClearFaults()
		w.change("web", without(annotation.SecurityGroupIDs))
	}
	web := func(ports ...int32) []func(*corev1.Service) {
		return []func(*corev1.Service){
			testkube.TCP(ports...), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, ""),
			with(annotation.ForceOverrideListeners, "true"),
		}
	}
	for name, test := range map[string]struct {
		// trouble keeps port 81 from being served, end ends that.
		trouble, end func(w *world)
		reason       string
	}{
		"conflict": {
			func(w *world) { other(w, 81) }, func(w *world) { other(w, 8081) }, "ListenerConflict",
		},
		"no certificate": {
			func(w *world) { w.change("web", with(annotation.ProtocolPort, "tcpssl:81")) },
			func(w *world) { w.change("web", with(annotation.CertID, "cert-1")) }, "InvalidAnnotation",
		},
		"protocol": {
			func(w *world) {
				w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[1].Protocol = corev1.ProtocolSCTP })
			},
			func(w *world) {
				w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[1].Protocol = corev1.ProtocolTCP })
			}, "FeatureNotSupported",
		},
		"refused listener": {
			func(w *world) {
				refuse(w, `"action":"CreateListener","code":"QuotaExceeded.ListenersNum","status":400`)
			}, settled, "SyncLoadBalancerFailed",
		},
		"refused group": {
			func(w *world) { refuse(w, `"action":"CreateServerGroup","code":"Forbidden.RAM","status":403`) }, settled, "SyncLoadBalancerFailed",
		},
		"failed job of a listener": {
			func(w *world) { refuse(w, `"action":"CreateListener","job":"failed"`) }, settled, "SyncLoadBalancerFailed",
		},
		"missing security group": {func(w *world) { closed(w, "") }, opened, "SyncLoadBalancerFailed"},
		"refused security group": {
			func(w *world) { closed(w, `"code":"OperationDenied.SecurityGroupNotInVpc","status":400`) }, opened, "SyncLoadBalancerFailed",
		},
		"failed job of a security group": {func(w *world) { closed(w, `"job":"failed"`) }, opened, "SyncLoadBalancerFailed"},
		"failed job of a group": {
			func(w *world) { refuse(w, `"action":"CreateServerGroup","job":"failed"`) }, settled, "SyncLoadBalancerFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := w.existing("by-hand")
				w.addNodes("n1")
				w.put(newService("other", append(web(8081), with(annotation.LoadBalancerID, id))...))
				w.converge("other")
				w.put(newService("web", append(web(80, 81), with(annotation.LoadBalancerID, id))...))
				test.trouble(w)
				protocol := w.get("web").Spec.Ports[1].Protocol
				w.passes("web", time.Minute)
				want := []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP},
					{Port: 81, Protocol: protocol, Error: new("service.alibabacloud.com/" + test.reason)}}
				if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 || cmp.Diff(want, ingress[0].Ports) != "" {
					t.Errorf("ingress %+v, want one with the ports %+v", ingress, want)
				}
				test.end(w)
				testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "the test says so"))
				w.converge("web")
				if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].Ports != nil {
					t.Errorf("ingress %+v, want one without ports", ingress)
				}
			})
		})
	}
}

// TestServiceThatLostItsOnlyPort: it shows no address.
func TestServiceThatLostItsOnlyPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.existing("by-hand")
		reusing := []func(*corev1.Service){testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true")}
		w.serve(1, reusing...)
		w.put(newService("late", reusing...))
		w.converge("late")
		if ingress := w.get("late").Status.LoadBalancer.Ingress; len(ingress) != 0 {
			t.Errorf("ingress %v, want none", ingress)
		}
	})
}

// TestListenersLeftAloneInTheCondition: events are gone after an hour, and the condition stays.
func TestListenersLeftAloneInTheCondition(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("by-hand")))
		condition := meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionSynced)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != "ListenersLeftAlone" {
			t.Errorf("condition %+v, want one that says that the listeners are not managed", condition)
		}
	})
}
