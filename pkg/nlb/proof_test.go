package nlb

import (
	"encoding/json"
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

// rename gives an NLB the name of that of a Service, and the reason of the modification protection that the manager sets.
func (w *world) rename(id string, svc *corev1.Service) {
	w.t.Helper()
	none, on := alicloud.NonProtection, alicloud.ConsoleProtection
	api := w.account.Client
	testkit.Check(w.t, api.ProtectNLB(w.t.Context(), id, alicloud.NLBProtection{Modification: &none}))
	testkit.Must(api.UpdateNLB(w.t.Context(), id, alicloud.NLBAttributes{Name: new(mark.DefaultName(svc.UID))}))(w.t)
	w.later(30 * settle)
	testkit.Check(w.t, api.ProtectNLB(w.t.Context(), id, alicloud.NLBProtection{Modification: &on, Reason: mark.ProtectionReason}))
}

// TestNameProvesNothing: an NLB of a group and an existing one that have the name which an NLB of a Service's own has, and its protection,
// are neither used nor deleted by that, and keep the Service from nothing.
func TestNameProvesNothing(t *testing.T) {
	t.Parallel()
	for name, makeOther := range map[string]func(*world) string{
		"of a group": func(w *world) string {
			w.addNodes("n1")
			w.put(grouped("web", "edge", 1, testkube.TCP(80)))
			w.converge("web")
			return w.current("web")
		},
		"by hand": func(w *world) string { return w.existing("payroll") },
	} {
		for _, labeled := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", with the label"}[labeled], func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					id := makeOther(w)
					claim := newService("claim", testkube.TCP(8080), func(svc *corev1.Service) { svc.Finalizers = []string{Finalizer} })
					if labeled {
						claim.Labels = map[string]string{"service.k8s.alibaba/loadbalancer-id": id}
					}
					w.rename(id, claim)
					listeners := len(w.listeners(id))
					w.put(claim)
					w.restart()
					_ = w.try("claim") //nolint:errcheck // what it has done is looked at
					lb := testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t)
					if w.current("claim") == id && !labeled || hasTag(&lb, mark.TagOwner) {
						t.Errorf("the Service is on %s, tags %v", w.current("claim"), lb.Tags)
					}
					w.remove("claim")
					_ = w.try("claim") //nolint:errcheck // the same
					if !w.exists(id) || len(w.listeners(id)) != listeners {
						t.Errorf("%s is there: %v", id, w.exists(id))
					}
					if len(w.get("claim").Finalizers) > 0 && !labeled {
						t.Errorf("finalizers %v", w.get("claim").Finalizers)
					}
				})
			})
		}
	}
}

// TestUsedByIDNeverBecomesOwn: an existing NLB that a Service has used by its id stays when the Service goes, whatever name and protection
// it has by then.
func TestUsedByIDNeverBecomesOwn(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			id := w.existing("payroll")
			w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
				with(annotation.ForceOverrideListeners, "true"))
			if w.rename(id, w.get("web")); !named {
				w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners))
			}
			w.restart()
			_ = w.try("web") //nolint:errcheck // what it has done is looked at
			w.remove("web")
			w.converge("web")
			if !w.exists(id) || len(w.listeners(id)) > 0 {
				t.Errorf("named %v: it is there: %v", named, w.exists(id))
			}
		})
	}
}

// TestListenerOfOthersKeepsNLB: an NLB of the Service's own on which somebody else has a listener stays, and what is the Service's goes
// from it.
func TestListenerOfOthersKeepsNLB(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*world){"known": func(*world) {}, "after a restart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80))
				id, group := w.balancer("web").ID, w.groups("web")[0]
				foreign := testkit.Must(createGroup(w, "by-hand", group.VPCID))(t)
				_, _, err := w.account.Client.CreateNLBListener(t.Context(), alicloud.NLBListener{
					LoadBalancerID: id, Protocol: alicloud.NLBTCP, Port: 443,
					NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &foreign, Description: new("by hand")},
				}, "by-hand")
				testkit.Check(t, err)
				w.later(30 * settle)
				begin(w)
				w.newEvents()
				w.remove("web")
				w.converge("web")
				if left := w.listeners(id); len(left) != 1 || !strings.HasPrefix(left[0], "TCP:443") {
					t.Errorf("listeners %v", left)
				}
				if groups := w.groups("web"); len(groups) > 0 || len(w.get("web").Finalizers) > 0 {
					t.Errorf("groups %v, finalizers %v", groups, w.get("web").Finalizers)
				}
				if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonLoadBalancerKept+" NLB "+id) {
					t.Errorf("events %q", events)
				}
			})
		})
	}
}

func createGroup(w *world, name, vpc string) (string, error) {
	id, _, err := w.account.Client.CreateNLBGroup(w.t.Context(),
		alicloud.NLBGroup{Name: name, VPCID: vpc, Type: "Instance", Protocol: alicloud.NLBTCP}, name)
	w.later(30 * settle)
	return id, err
}

// TestChosenNameProvesNothing: the author of a Service has its status show the name of the NLB of the API server, or of a group, by an
// annotation. That neither opens the one nor puts the Service on the other, also once the annotation is gone and before the status has
// changed.
func TestChosenNameProvesNothing(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*corev1.Service){"annotated": func(*corev1.Service) {},
		"no longer": without(annotation.Hostname)} {
		t.Run("API server, "+name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				id := w.existing("api")
				w.listenerByHand(id, 6443, testkube.InstanceOf("n1"), 6443)
				lb := testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t)
				w.config.FindAPIServer = func() policy.APIServer { return policy.APIServer{Addresses: []string{lb.DNSName}, Port: 6443} }
				w.restart()
				w.put(newService("web", testkube.TCP(80), with(annotation.Hostname, lb.DNSName)))
				w.converge("web")
				if shown := w.get("web").Status.LoadBalancer.Ingress; len(shown) != 1 || shown[0].Hostname != lb.DNSName {
					t.Fatalf("status %v", shown)
				}
				w.newEvents()
				w.change("web", gone, with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"))
				w.converge("web")
				if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerNotReusable) ||
					len(w.listeners(id)) != 1 {
					t.Errorf("listeners %v, events %s", w.listeners(id), events)
				}
			})
		})
		t.Run("without an owner, "+name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				w.put(newService("shop", testkube.TCP(443)))
				w.converge("shop")
				victim := w.balancer("shop")
				testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{victim.ID}, []string{mark.TagOwner}))
				w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("existing")),
					with(annotation.ForceOverrideListeners, "true"), with(annotation.Hostname, victim.DNSName)))
				w.converge("web")
				w.change("web", gone, without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners),
					with(annotation.ZoneMaps, twoZones))
				w.restart()
				_ = w.try("web") //nolint:errcheck // what it has done is looked at
				if w.current("web") == victim.ID || len(w.listeners(victim.ID)) != 1 {
					t.Errorf("the Service is on %s, which has the listeners %v", w.current("web"), w.listeners(victim.ID))
				}
			})
		})
	}
}

// TestLabelUsesNothing: a Service that names an existing NLB by its label alone does not get there. The annotation may be forbidden in its
// namespace.
func TestLabelUsesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		id := w.existing("public")
		w.put(newService("claim", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.ForceOverrideListeners, "true"),
			func(svc *corev1.Service) {
				svc.Finalizers, svc.Labels = []string{Finalizer}, map[string]string{driver.LabelLoadBalancerID: id}
			}))
		_ = w.try("claim") //nolint:errcheck // it lacks its zones
		if listeners, shown := w.listeners(id), w.get("claim").Status.LoadBalancer.Ingress; len(listeners)+len(shown) > 0 {
			t.Errorf("listeners %v, status %v", listeners, shown)
		}
	})
}

// TestGroupOfTheAPIServerIsRefused: no Service gets its servers into the server group of the API server, by naming that while it uses
// another NLB.
func TestGroupOfTheAPIServerIsRefused(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]policy.APIServer{
		"instance": {Port: 6443, Instances: []string{testkube.InstanceOf("n1")}},
		"another":  {Port: 6443, Instances: []string{"i-another"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1", "n2")
				w.listenerByHand(w.existing("api"), 6443, testkube.InstanceOf("n1"), 6443)
				w.config.FindAPIServer = func() policy.APIServer { return server }
				w.restart()
				all := testkit.Must(w.account.Client.ListNLBGroups(t.Context(), alicloud.NLBGroupQuery{}))(t)
				if len(all) != 1 {
					t.Fatalf("groups %+v", all)
				}
				w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("harmless")),
					with(annotation.VGroupPort, all[0].ID+":80")))
				w.converge("web")
				servers := w.servers(all[0].ID)
				if refused := len(servers) == 1; refused != (name == "instance") {
					t.Errorf("servers %v, events %q", servers, w.newEvents())
				}
			})
		})
	}
}

// TestForgedRecordRemovesNoMark: what somebody has written to the status of a Service takes no tag of ours from the NLB of another one.
func TestForgedRecordRemovesNoMark(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		for _, name := range []string{"shop", "web"} {
			w.put(newService(name, testkube.TCP(80)))
			w.converge(name)
		}
		victim := w.balancer("shop")
		w.change("web", func(svc *corev1.Service) {
			record, _ := driver.RecordOn(svc)
			record.UID, record.Left = svc.UID, map[string][]string{victim.ID: {mark.TagOwner, mark.TagCluster}}
			testkube.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten, string(testkit.Must(json.Marshal(record))(t)))
		})
		w.restart()
		w.converge("web")
		w.later(time.Minute)
		w.converge("web")
		lb := testkit.Must(w.account.Client.GetNLB(t.Context(), victim.ID))(t)
		if !hasTag(&lb, mark.TagOwner) || !hasTag(&lb, mark.TagCluster) {
			t.Errorf("tags %v", lb.Tags)
		}
	})
}
