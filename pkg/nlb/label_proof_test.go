package nlb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestIDsTellNothing: whoever can edit Services finds out neither by the label nor by the annotation which ids the account has.
func TestIDsTellNothing(t *testing.T) {
	t.Parallel()
	for by, naming := range map[string]func(id string) []func(*corev1.Service){
		"label": func(id string) []func(*corev1.Service) {
			return edits(func(svc *corev1.Service) {
				svc.Finalizers, svc.Labels = []string{Finalizer}, map[string]string{driver.LabelLoadBalancerID: id}
			})
		},
		"annotation": func(id string) []func(*corev1.Service) {
			return edits(without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id))
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			heard := func(t *testing.T, tags ...alicloud.Tag) (said string) {
				t.Helper()
				inWorld(t, func(t *testing.T, w *world) {
					w.addNodes("n1")
					w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
					w.restart()
					id := "nlb-none"
					if len(tags) > 0 {
						id = w.existing("payroll")
						testkit.Check(t, w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, tags))
					}
					w.put(newService("claim", append(naming(id), testkube.TCP(80))...))
					var all []string
					for range 4 {
						if _, err := w.Reconcile(t.Context(), w.get("claim")); err != nil {
							all = append(all, err.Error())
						}
						for _, condition := range w.get("claim").Status.Conditions {
							if condition.Type != driver.ConditionWritten {
								all = append(all, condition.Reason, condition.Message)
							}
						}
						time.Sleep(30 * settle)
					}
					all = append(all, w.newEvents()...)
					said = strings.ReplaceAll(strings.Join(all, "\n"), id, "ID")
					if own := w.current("claim"); own != "" {
						said = strings.ReplaceAll(said, own, "ID")
					}
				})
				return said
			}
			want := heard(t)
			for _, tag := range []alicloud.Tag{
				{Key: "team", Value: "payroll"}, {Key: mark.TagAllow, Value: "c2"}, {Key: mark.TagOwner, Value: "a1"},
				{Key: mark.TagGroup, Value: "c1/default/edge"},
			} {
				if got := heard(t, tag); got != want {
					t.Errorf("of one with the tag %s it is said\n%s\nand of one that does not exist\n%s", tag.Key, got, want)
				}
			}
		})
	}
}

// TestNameOnACLBProvesNothing: a Service that was on a CLB, for which its author had chosen the name of the NLB of the API server, does not
// get to that, also if its status still shows the name.
func TestNameOnACLBProvesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		id := w.existing("api")
		w.listenerByHand(id, 6443, testkube.InstanceOf("n1"), 6443)
		lb := testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t)
		w.config.FindAPIServer = func() policy.APIServer { return policy.APIServer{Addresses: []string{lb.DNSName}, Port: 6443} }
		w.restart()
		svc := newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true"))
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: lb.DNSName}}
		testkube.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten,
			`{"loadBalancer":"lb-clb","made":"lb-clb","uid":"`+string(svc.UID)+`"}`)
		w.put(svc)
		_ = w.try("web") //nolint:errcheck // it is refused
		if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerNotReusable) ||
			len(w.listeners(id)) != 1 {
			t.Errorf("listeners %v, events %s", w.listeners(id), events)
		}
	})
}
