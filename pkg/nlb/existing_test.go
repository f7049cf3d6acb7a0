package nlb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// TestNLBOfTheAPIServerIsRefused: no Service uses the load balancer in front of the API servers, by whatever it is recognized. One that was
// on it before keeps its ports.
func TestNLBOfTheAPIServerIsRefused(t *testing.T) {
	t.Parallel()
	const port, apiPort = 8443, 6443
	shows := func(id, name string) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			svc.Labels, svc.Finalizers = map[string]string{driver.LabelLoadBalancerID: id}, []string{Finalizer}
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: name}}
		}
	}
	for name, test := range map[string]struct {
		listener int // port of the listener that somebody made
		known    func(lb alicloud.NLB) policy.APIServer
		was      bool   // on it before, as its status shows
		claims   bool   // to have been on it, as its label says, while its status shows another one
		uses     int32  // the port of the Service
		want     string // in the event, empty for a Service that is served
	}{
		"another": {listener: port, known: func(alicloud.NLB) policy.APIServer {
			return policy.APIServer{Addresses: []string{"10.9.9.9"}, Port: apiPort, Instances: []string{"i-other"}}
		}, uses: 80},
		"address": {listener: port, known: func(lb alicloud.NLB) policy.APIServer {
			return policy.APIServer{Addresses: []string{lb.Zones[1].PrivateIPv4}}
		}, uses: 80, want: "is that of the API server (10."},
		"name": {listener: port, known: func(lb alicloud.NLB) policy.APIServer {
			return policy.APIServer{Addresses: []string{lb.DNSName}}
		}, uses: 80, want: "is that of the API server (nlb-"},
		"port": {listener: apiPort, known: func(alicloud.NLB) policy.APIServer {
			return policy.APIServer{Port: apiPort}
		}, uses: 80, want: "whose listener has port 6443"},
		"backend": {listener: port, known: func(alicloud.NLB) policy.APIServer {
			return policy.APIServer{Port: apiPort, Instances: []string{testkube.InstanceOf("n1")}}
		}, uses: 80, want: "whose listener has port 8443"},
		"was on it": {
			listener: port, known: func(lb alicloud.NLB) policy.APIServer {
				return policy.APIServer{Addresses: []string{lb.DNSName}, Port: apiPort, Instances: []string{testkube.InstanceOf("n1")}}
			}, was: true, uses: 80,
		},
		"says that it was on it": {listener: port, known: func(lb alicloud.NLB) policy.APIServer {
			return policy.APIServer{Addresses: []string{lb.DNSName}}
		},
			claims: true, uses: 80, want: "is that of the API server (nlb-"},
		"was on it, and takes its port": {
			listener: port, known: func(alicloud.NLB) policy.APIServer {
				return policy.APIServer{Port: apiPort, Instances: []string{testkube.InstanceOf("n1")}}
			},
			was: true, uses: port, want: "whose listener has port 8443",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				id := w.existing("by-hand")
				w.listenerByHand(id, test.listener, testkube.InstanceOf("n1"), apiPort)
				lb := testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t)
				w.config.FindAPIServer = func() policy.APIServer { return test.known(lb) }
				w.restart()
				svc := newService("web", testkube.TCP(test.uses), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
					with(annotation.ForceOverrideListeners, "true"))
				if test.was {
					shows(id, lb.DNSName)(svc)
				} else if test.claims {
					shows(id, "nlb-other.example.com")(svc)
				}
				w.put(svc)
				w.calls()
				w.converge("web")
				calls, events := writes(w.calls()), strings.Join(w.newEvents(), "\n")
				if refused := strings.Contains(events,
					"LoadBalancerNotReusable"); refused != (test.want != "") || !strings.Contains(events, test.want) || refused != (len(calls) == 0) {
					t.Errorf("writes %v, events:\n%s\nwant %q", calls, events, test.want)
				}
			})
		})
	}
}

// listenerByHand makes a listener as a user would in the console, to a port of an instance.
func (w *world) listenerByHand(id string, port int, instance string, serverPort int) {
	w.t.Helper()
	ctx, api := w.t.Context(), w.account.Client
	lb := testkit.Must(api.GetNLB(ctx, id))(w.t)
	group, _, err := api.CreateNLBGroup(ctx, alicloud.NLBGroup{Name: "by-hand", VPCID: lb.VPCID, Protocol: alicloud.NLBTCP}, "by-hand")
	testkit.Check(w.t, err)
	w.later(5 * settle)
	_, err = api.AddNLBServers(ctx, group,
		[]alicloud.NLBServer{{NLBServerKey: alicloud.NLBServerKey{ID: instance, Type: alicloud.NLBServerECS, Port: serverPort}, Weight: 100}})
	testkit.Check(w.t, err)
	w.later(5 * settle)
	_, _, err = api.CreateNLBListener(ctx,
		alicloud.NLBListener{LoadBalancerID: id, Port: port, Protocol: alicloud.NLBTCP,
			NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &group}}, "by-hand")
	testkit.Check(w.t, err)
	w.later(5 * settle)
}
