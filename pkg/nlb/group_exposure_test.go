package nlb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// only returns the NLB with the name.
func (w *world) only(name string) alicloud.NLB {
	w.t.Helper()
	for _, lb := range testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t) {
		if lb.Name == name {
			return testkit.Must(w.account.Client.GetNLB(w.t.Context(), lb.ID))(w.t)
		}
	}
	w.t.Fatalf("no NLB %s", name)
	return alicloud.NLB{}
}

func (w *world) enterpriseGroup(token string) string {
	w.t.Helper()
	return testkit.Must(w.account.Client.CreateSecurityGroup(w.t.Context(),
		alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, token))(w.t)
}

// TestLeaderPublishesNoPrivateService: a Service that asks for a private address has a listener on a private NLB of a group. What the
// oldest Service becomes does not open it to the internet.
func TestLeaderPublishesNoPrivateService(t *testing.T) {
	t.Parallel()
	private, public := with(annotation.AddressType, "intranet"), with(annotation.AddressType, "internet")
	for name, test := range map[string]struct {
		web    []func(*corev1.Service)
		change func(*world)
	}{
		"the oldest one becomes public": {nil, func(w *world) { w.change("web", public) }},
		"its annotation is removed":     {nil, func(w *world) { w.change("web", without(annotation.AddressType)) }},
		"an older public one comes":     {nil, func(w *world) { w.put(grouped("old", "edge", 0, testkube.TCP(90), public)) }},
		"a public one follows it": {nil, func(w *world) {
			w.put(grouped("mid", "edge", 2, testkube.TCP(90), public))
			w.together("mid", "shop", "web")
			w.delete("web")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80), private), grouped("shop", "edge", 3, testkube.TCP(81), private))
				test.change(w)
				w.allTogether()
				lb := w.only(edgeNLB)
				owners := strings.Join(w.ownersOf()[edgeNLB], " ")
				if strings.EqualFold(lb.AddressType, alicloud.NLBInternet) && strings.Contains(owners, "81 shop") {
					t.Errorf("shop asks for a private address, and its listener is on a public NLB: %s; events:\n%s", owners,
						strings.Join(w.newEvents(), "\n"))
				}
			})
		})
	}
}

// TestLeaderOpensNoRestrictedService: the security groups that a Service names stay on its NLB while it has a listener there.
func TestLeaderOpensNoRestrictedService(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, other string){
		"removed from the oldest one": func(w *world, _ string) { w.change("web", without(annotation.SecurityGroupIDs)) },
		"emptied on the oldest one":   func(w *world, _ string) { w.change("web", with(annotation.SecurityGroupIDs, "")) },
		"changed on the oldest one":   func(w *world, other string) { w.change("web", with(annotation.SecurityGroupIDs, other)) },
		"an older one with others comes": func(w *world, other string) {
			w.put(grouped("old", "edge", 0, testkube.TCP(90), with(annotation.SecurityGroupIDs, other)))
		},
		"one with others follows it": func(w *world, other string) {
			w.put(grouped("mid", "edge", 2, testkube.TCP(90)))
			w.together("mid", "shop", "web")
			w.change("mid", with(annotation.SecurityGroupIDs, other))
			w.together("mid", "shop", "web")
			w.delete("web")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				sg, other := w.enterpriseGroup("one"), w.enterpriseGroup("two")
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80), with(annotation.SecurityGroupIDs, sg)),
					grouped("shop", "edge", 3, testkube.TCP(81), with(annotation.SecurityGroupIDs, sg)))
				change(w, other)
				w.allTogether()
				lb := w.only(edgeNLB)
				owners := strings.Join(w.ownersOf()[edgeNLB], " ")
				if !slices.Contains(lb.SecurityGroups, sg) && strings.Contains(owners, "81 shop") {
					t.Errorf("shop names %s, its NLB has %v, and its listener is there: %s", sg, lb.SecurityGroups, owners)
				}
				if name == "an older one with others comes" && strings.Contains(owners, "90 old") && !slices.Contains(lb.SecurityGroups, other) {
					t.Errorf("old names %s, its NLB has %v, and its listener is there: %s", other, lb.SecurityGroups, owners)
				}
			})
		})
	}
}

// TestOpenNLBTakesNoRestrictedService: it is the NLB that has to have the security groups, and not the annotation of the oldest Service.
func TestOpenNLBTakesNoRestrictedService(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, sg string){
		"the oldest one is paused": func(w *world, sg string) {
			w.change("web", with(annotation.SecurityGroupIDs, sg), testkube.Annotation(driver.AnnotationPaused, "true"))
			w.fillServices()
		},
		"the oldest one is not there": func(w *world, sg string) {
			w.put(grouped("old", "edge", 0, testkube.TCP(90), with(annotation.SecurityGroupIDs, sg), func(svc *corev1.Service) {
				svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
			}))
			w.together("old", "web")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				sg := w.enterpriseGroup("one")
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
				change(w, sg)
				w.put(grouped("shop", "edge", 3, testkube.TCP(81), with(annotation.SecurityGroupIDs, sg)))
				w.live("shop", 60e9)
				lb := w.only(edgeNLB)
				owners := strings.Join(w.ownersOf()[edgeNLB], " ")
				if !slices.Contains(lb.SecurityGroups, sg) && strings.Contains(owners, "81 shop") {
					t.Errorf("shop names %s, its NLB has %v, and its listener is there: %s", sg, lb.SecurityGroups, owners)
				}
				if name == "the oldest one is paused" {
					w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, driver.AnnotationPaused) })
					w.together("web", "shop")
					lb, owners = w.only(edgeNLB), strings.Join(w.ownersOf()[edgeNLB], " ")
					if !slices.Contains(lb.SecurityGroups, sg) || !strings.Contains(owners, "81 shop") {
						t.Errorf("after the pause, the NLB has %v and the listeners %s", lb.SecurityGroups, owners)
					}
				}
			})
		})
	}
}

// TestRefusedServiceTakesNoPort: an older Service that cannot have a listener on the NLB of the group takes no port from one that has.
func TestRefusedServiceTakesNoPort(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"ranges":  func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} },
		"private": with(annotation.AddressType, "intranet"),
	} {
		for _, before := range []string{"new", "moves", "moves, before a pass over it"} {
			t.Run(name+" "+before, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 3, testkube.TCP(80)), newService("blog", testkube.TCP(99)))
					order := []string{"old", "shop"}
					if before == "moves, before a pass over it" {
						slices.Reverse(order)
					}
					if before != "new" {
						w.put(newService("old", born(1), testkube.TCP(80), change))
						w.together("old", "shop")
						w.change("old", with(annotation.Group, "edge"))
					} else {
						w.put(grouped("old", "edge", 1, testkube.TCP(80), change))
					}
					for range 3 {
						w.fillServices()
						for _, name := range order {
							_, err := w.Reconcile(t.Context(), w.get(name))
							t.Log(name, err)
							w.later(20 * settle)
						}
					}
					if owners := w.ownersOf()[edgeNLB]; !slices.Contains(owners, "tcp:80 shop") {
						t.Errorf("shop has lost its listener to a Service that gets none: %v; events:\n%s", w.ownersOf(), strings.Join(w.newEvents(), "\n"))
					}
				})
			})
		}
	}
}

// allTogether has passes made over the Services that there are until nothing changes.
func (w *world) allTogether() {
	w.t.Helper()
	w.fillServices()
	for _, name := range []string{"old", "mid", "web", "shop"} {
		if _, err := w.factory.Core().V1().Services().Lister().Services(testkube.Namespace).Get(name); err == nil {
			w.together(name, "shop")
		}
	}
}
