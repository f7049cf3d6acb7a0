package nlb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// strangersListener makes a listener that leads to a server group.
func (w *world) strangersListener(balancer, group string, port int) {
	w.t.Helper()
	text := "by hand"
	_, _, err := w.account.Client.CreateNLBListener(w.t.Context(), alicloud.NLBListener{
		LoadBalancerID: balancer, Port: port, Protocol: alicloud.NLBTCP,
		NLBListenerSettings: alicloud.NLBListenerSettings{Description: &text, ServerGroupID: &group},
	}, "by hand "+balancer)
	testkit.Check(w.t, err)
	w.later(5 * settle)
}

// TestGroupInUseByOthersHoldsNobody: a server group with something of somebody else stays, without the servers of the Service. The Service
// goes, an event says what stays, and the list of orphans has it.
func TestGroupInUseByOthersHoldsNobody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		service func(w *world) []func(*corev1.Service)
		others  func(w *world, group string)
		says    string
		left    []string
	}{
		"a listener on another load balancer": {
			func(*world) []func(*corev1.Service) { return nil },
			func(w *world, group string) { w.strangersListener(w.existing("first"), group, 8080) }, "others use it: listener lsn-", []string{},
		},
		"a listener on the load balancer": {
			func(*world) []func(*corev1.Service) { return nil },
			func(w *world, group string) { w.strangersListener(w.balancer("web").ID, group, 8080) }, "others use it: listener lsn-", []string{},
		},
		"the owner's listener on an existing load balancer": {
			func(w *world) []func(*corev1.Service) {
				return edits(without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("first")))
			},
			func(w *world, group string) { w.strangersListener(w.named("first"), group, 80) }, "others use it: listener lsn-", []string{},
		},
		"a server": {
			func(*world) []func(*corev1.Service) { return nil },
			func(w *world, group string) {
				w.addNodes("x")
				w.deleteNode("x")
				_, err := w.account.Client.AddNLBServers(w.t.Context(), group, []alicloud.NLBServer{{
					NLBServerKey: alicloud.NLBServerKey{ID: testkube.InstanceOf("x"), Type: alicloud.NLBServerECS, Port: 9999}, Weight: 50,
					Description: "by hand",
				}})
				testkit.Check(w.t, err)
				w.later(5 * settle)
			}, "it has servers of others", []string{"i-x:9999=50"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, append(edits(testkube.TCP(80)), test.service(w)...)...)
				group := w.groups("web")[0].ID
				test.others(w, group)
				w.newEvents()
				w.remove("web")
				w.calls()
				if err := w.try("web"); err != nil {
					t.Error(err)
				}
				w.later(5 * settle)
				if calls := writes(w.calls()); len(calls) > 6 {
					t.Errorf("writes %v", calls)
				}
				if got := w.servers(group); len(w.get("web").Finalizers) > 0 || !slices.Equal(got, test.left) && len(got)+len(test.left) > 0 {
					t.Errorf("servers %v, finalizers %v", got, w.get("web").Finalizers)
				}
				events := w.newEvents()
				mustReport(t, events, "KeptInUse", group, test.says)
				if n := len(slices.DeleteFunc(events, func(e string) bool { return !strings.Contains(e, "KeptInUse") })); n > 2 {
					t.Errorf("%d events", n)
				}
				if found := w.orphans(driver.OrphanQuery{ClusterIDs: []string{testCluster}}); !slices.ContainsFunc(found, func(o driver.Orphan) bool {
					return o.ID == group
				}) {
					t.Errorf("orphans %v", found)
				}
			})
		})
	}
}

// TestGroupOfAFormerPortInUseByOthers: it stays, and costs no calls.
func TestGroupOfAFormerPortInUseByOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		w.strangersListener(w.existing("first"), w.groups("web")[0].ID, 8080)
		w.drift()
		w.converge("web")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31080 })
		w.converge("web")
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{"TCP:80 i-n1:31080=100"}) {
			t.Errorf("listeners %v", got)
		}
		mustReport(t, w.newEvents(), "KeptInUse")
		w.quiet("web")
	})
}

// TestUnreadStrangers: that the listeners of other load balancers cannot be read keeps no server from coming and going.
func TestUnreadStrangers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkube.TCP(80))
		other := w.existing("first")
		w.strangersListener(other, w.groups("web")[0].ID, 8080)
		w.account.Fault(`{"action":"ListListeners","times":0,"after":1,"code":"Forbidden.RAM","status":403}`) // the first is about its own
		w.restart()
		w.addNodes("n3")
		w.deleteNode("n1")
		_ = w.try("web") //nolint:errcheck // that is an error, of course
		w.account.ClearFaults()
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{"TCP:80 i-n2:30080=100 i-n3:30080=100"}) {
			t.Errorf("listeners %v", got)
		}
	})
}

// TestRenamedSecurityGroup: the security group of the source ranges is found by its id and by its tag, whatever its name is.
func TestRenamedSecurityGroup(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"in one process": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), ranges("192.0.2.0/24", "198.51.100.0/24"))
				id := w.balancer("web").SecurityGroups[0]
				w.account.Raw(api.VersionECS, "ModifySecurityGroupAttribute", map[string]string{"SecurityGroupId": id, "SecurityGroupName": "renamed"},
					nil)
				if restarts {
					w.restart()
				}
				w.drift()
				w.change("web", ranges("192.0.2.0/24"))
				w.converge("web")
				if got := w.accepted("web"); !slices.Equal(got, []string{"192.0.2.0/24"}) || len(w.securityGroups("web")) != 1 {
					t.Errorf("accepted %v by the groups %v", got, w.securityGroups("web"))
				}
				w.remove("web")
				w.converge("web")
				if left := w.securityGroups("web"); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}
