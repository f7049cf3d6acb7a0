package nlb

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// existing makes a load balancer as a user would in the console.
func (w *world) existing(name string) string {
	w.t.Helper()
	id := testkit.Must(w.account.Client.CreateNLB(w.t.Context(), alicloud.NLB{
		Name: name, VPCID: emulatortest.VPC, AddressType: alicloud.NLBIntranet,
		Zones: []alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"}},
	}, name))(w.t)
	w.later(30 * settle)
	w.calls()
	return id
}

// exists reports whether there is a load balancer.
func (w *world) exists(id string) bool {
	w.t.Helper()
	_, err := w.account.Client.GetNLB(w.t.Context(), id)
	return err == nil
}

// TestGoldenMoves: a Service that names another load balancer has its listeners there before it leaves what it had: the one of its own is
// deleted, an existing one keeps what others have. A process that restarts in between goes on.
func TestGoldenMoves(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(map[bool]string{false: "in one process", true: "with restarts"}[restarts], func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.existing("first"), w.existing("second")
				w.serve(1, testkube.TCP(80))
				own := w.balancer("web").ID
				on := func(id string, left ...string) {
					t.Helper()
					if restarts {
						_, err := w.Reconcile(t.Context(), w.get("web"))
						testkit.Check(t, err)
						w.restart()
					}
					w.converge("web")
					w.later(30 * settle)
					want := []string{"TCP:80 i-n1:30080=100"}
					if got := w.listeners(id); !slices.Equal(got, want) || w.current("web") != id {
						t.Errorf("on %s, want %s: listeners %v", w.current("web"), id, got)
					}
					for _, other := range left {
						if got := w.listeners(other); len(got) > 0 {
							t.Errorf("left on %s: %v", other, got)
						}
					}
					if len(w.groups("web")) != 1 {
						t.Errorf("%d groups", len(w.groups("web")))
					}
					w.quiet("web")
				}
				w.calls()
				w.change("web", with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"))
				if !restarts {
					w.converge("web")
					if got, want := writes(w.calls()), []string{"CreateListener", "UpdateLoadBalancerProtection", "DeleteLoadBalancer"}; !slices.Equal(got,
						want) {
						t.Errorf("writes %v, want %v", got, want)
					}
				}
				on(a)
				if w.exists(own) {
					t.Error("the load balancer of the Service's own is there")
				}
				w.change("web", with(annotation.LoadBalancerID, b))
				on(b, a)
				w.change("web", with(annotation.LoadBalancerID, "nlb-none"))
				w.newEvents()
				w.converge("web")
				mustReport(t, w.newEvents(), "does not exist; the manager creates no replacement; the Service stays on NLB "+b)
				w.addNodes("n2")
				w.converge("web")
				if got, want := w.listeners(b), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) {
					t.Errorf("listeners %v, want %v", got, want)
				}
				w.deleteNode("n2")
				w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners))
				on(w.movedTo(b), b)
				w.remove("web")
				w.converge("web")
				if left := len(w.balancers("web")) + len(w.groups("web")) + len(w.get("web").Finalizers); left > 0 || !w.exists(a) || !w.exists(b) {
					t.Errorf("%d things are left", left)
				}
			})
		})
	}
}

// movedTo is the load balancer of its own that a Service gets in place of an existing one.
func (w *world) movedTo(from string) string {
	w.t.Helper()
	for len(w.balancers("web")) == 0 {
		_, err := w.Reconcile(w.t.Context(), w.get("web"))
		testkit.Check(w.t, err)
		w.later(settle)
	}
	if got := w.listeners(from); len(got) != 1 {
		w.t.Errorf("%s serves %v before the other one does", from, got)
	}
	return w.balancer("web").ID
}

// TestGoldenStaysWithoutZones: a Service that no longer names an existing load balancer, and no zones either, stays where it is, also
// after a restart.
func TestGoldenStaysWithoutZones(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		a := w.existing("first")
		w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, a),
			with(annotation.ForceOverrideListeners, "true"))
		w.calls()
		w.change("web", without(annotation.LoadBalancerID))
		for range 2 {
			w.converge("web")
			if got := w.listeners(a); len(got) != 1 || w.current("web") != a {
				t.Errorf("listeners %v", got)
			}
			w.restart()
		}
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
	})
}

// TestGoldenRemovedWhileItMoves: what the Service has left is removed with it.
func TestGoldenRemovedWhileItMoves(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"its own", "an existing one"} {
		for _, restarts := range []bool{false, true} {
			t.Run(from+map[bool]string{true: ", restart"}[restarts], func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					a, b := w.existing("first"), w.existing("second")
					override := with(annotation.ForceOverrideListeners, "true")
					if from == "its own" {
						w.serve(1, testkube.TCP(80))
					} else {
						w.serve(1, testkube.TCP(80), with(annotation.LoadBalancerID, a), override)
					}
					w.change("web", with(annotation.LoadBalancerID, b), override)
					_, err := w.Reconcile(t.Context(), w.get("web"))
					testkit.Check(t, err)
					if restarts {
						w.restart()
					}
					w.remove("web")
					w.converge("web")
					left := len(w.balancers("web")) + len(w.groups("web")) + len(w.get("web").Finalizers) + len(w.listeners(a)) + len(w.listeners(b))
					if left > 0 || !w.exists(a) || !w.exists(b) {
						t.Errorf("%d things are left: %v %v %v %v %v", left, w.balancers("web"), w.groups("web"), w.get("web").Finalizers, w.listeners(a),
							w.listeners(b))
					}
				})
			})
		}
	}
}

// TestTagsOfALoadBalancerThatIsLeft: a Service that moves to another existing load balancer, or goes, takes its tags off the one that it
// was on, and leaves those of its owner and those that another Service asks for.
func TestTagsOfALoadBalancerThatIsLeft(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"another", "its own", "none"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				a, b := w.existing("first"), w.existing("second")
				testkit.Check(t,
					w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{a}, []alicloud.Tag{{Key: "human", Value: "1"}}))
				on := func(id string) []func(*corev1.Service) {
					return edits(testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
						with(annotation.ForceOverrideListeners, "true"))
				}
				other := newService("other", append(on(a), ports(tcpPort(90)), with(annotation.AdditionalTags, "team=x"))...)
				testkit.Check(t, w.factory.Core().V1().Services().Informer().GetIndexer().Add(other))
				w.put(newService("web", append(on(a), with(annotation.AdditionalTags, "web=1,team=x"))...))
				w.converge("web")
				if got := w.tagKeys(a); !slices.Equal(got, []string{"human", "team", "web"}) {
					t.Errorf("tags %v", got)
				}
				switch to {
				case "another":
					w.change("web", with(annotation.LoadBalancerID, b))
				case "its own":
					w.change("web", without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners), with(annotation.ZoneMaps, twoZones))
				default:
					w.remove("web")
				}
				w.converge("web")
				if got := w.tagKeys(a); !slices.Equal(got, []string{"human", "team"}) {
					t.Errorf("tags of the one that it has left: %v", got)
				}
				if to == "another" {
					if got := w.tagKeys(b); !slices.Equal(got, []string{"team", "web"}) {
						t.Errorf("tags of the other one: %v", got)
					}
				}
			})
		})
	}
}
