package nlb

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// passes makes passes over a Service as they become due for a time, also where they fail, with the backoff of the controller.
func (w *world) passes(name string, over time.Duration) {
	w.t.Helper()
	testkit.Passes(over, func() (time.Duration, error) { return w.Reconcile(w.t.Context(), w.get(name)) })
}

// TestRefusedSettingStopsNothingElse: a setting that the cloud refuses for good, or whose job fails each time, keeps no port and no backend
// server from following the Service.
func TestRefusedSettingStopsNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, action string
		before, edit []func(*corev1.Service)
	}{
		{"bandwidth package", "AttachCommonBandwidthPackageToLoadBalancer", nil, edits(with(annotation.BandwidthPackageID, "cbwp-1"))},
		{"IPv6", "EnableLoadBalancerIpv6Internet", edits(with(annotation.IPVersion, "DualStack")),
			edits(with(annotation.IPv6AddressType, "internet"))},
		{"name", "UpdateLoadBalancerAttribute", nil, edits(with(annotation.Name, "refused"))},
		{"security group", "LoadBalancerJoinSecurityGroup", nil, edits(with(annotation.SecurityGroupIDs, "sg-none"))},
		{"health check", "UpdateServerGroupAttribute", nil,
			edits(with(annotation.HealthCheckFlag, "on"), with(annotation.HealthCheckType, "http"))},
		{"scheduler", "UpdateServerGroupAttribute", nil, edits(with(annotation.Scheduler, "rr"))},
	} {
		for fault, how := range map[string]string{
			"refused": `"code":"IllegalParam.Setting","status":400`, "not there": `"code":"ResourceNotFound.BandwidthPackage","status":404`,
			"job fails": `"job":"failed"`,
		} {
			if fault == "job fails" && (c.name == "IPv6" || c.name == "security group") {
				continue // the first takes effect at once, the second is refused without a fault
			}
			t.Run(c.name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.serve(2, append(slices.Clone(c.before), ports(tcpPort(80)))...)
					w.account.Fault(`{"times":0,"action":"` + c.action + `",` + how + `}`)
					w.change("web", c.edit...)
					w.passes("web", 5*time.Minute)
					w.addNodes("n3")
					w.deleteNode("n1")
					w.passes("web", 10*time.Minute)
					if got, want := w.listeners(w.balancer("web").ID), "TCP:80 i-n2:30080=100 i-n3:30080=100"; !slices.Contains(got, want) {
						t.Errorf("listeners %v, want %s", got, want)
					}
					w.calls()
					w.passes("web", time.Hour)
					if got := writes(w.calls()); len(got) > 70 {
						t.Errorf("%d writes in an hour: %v", len(got), got[:20])
					}
					says := c.action
					if fault == "job fails" {
						says = "failed; the cloud did not state a reason"
					}
					mustReport(t, w.newEvents(), says)
					w.change("web", ports(tcpPort(80), tcpPort(8080)))
					w.passes("web", 10*time.Minute)
					if got, want := len(w.listeners(w.balancer("web").ID)), 2; got != want && c.name != "security group" {
						t.Errorf("%d listeners, want %d", got, want)
					}
				})
			})
		}
	}
}

// TestServersComeWhileNoneCanLeave: the cloud does not let a server leave whose node is gone. Others come all the same, and a new port is
// served.
func TestServersComeWhileNoneCanLeave(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"refused": `"code":"IllegalParam.Servers","status":400`,
		"forbidden": `"code":"NoPermission","status":403`, "job fails": `"job":"failed"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(2, ports(tcpPort(80)))
				w.account.Fault(`{"times":0,"action":"RemoveServersFromServerGroup",` + fault + `}`)
				w.deleteNode("n1")
				w.passes("web", time.Minute)
				w.addNodes("n3")
				w.passes("web", 10*time.Minute)
				another := tcpPort(8080)
				another.NodePort = 30080
				w.change("web", ports(tcpPort(80), another))
				w.passes("web", 10*time.Minute)
				want := []string{"TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100", "TCP:8080 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100"}
				if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, want) {
					t.Errorf("listeners %v, want %v", got, want)
				}
			})
		})
	}
}

// TestRefusedServersEnd: the cloud refuses each call with servers with the code that is assumed to say that there are too many in it, also
// one with a single server. A pass ends all the same, and the next one comes after minutes.
func TestRefusedServersEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.account.Fault(`{"times":0,"action":"AddServersToServerGroup","code":"IllegalParam.Servers","status":400}`)
		w.addNodes("n1", "n2", "n3")
		w.put(newService("web", testkit.TCP(80)))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if _, err := w.Reconcile(ctx, w.get("web")); ctx.Err() != nil {
			t.Fatalf("the first pass did not end: %v", err)
		}
		w.passes("web", 10*time.Minute)
		calls := writes(w.calls())
		if got := slices.DeleteFunc(calls, func(call string) bool { return !strings.HasPrefix(call, "AddServers") }); len(got) > 12 {
			t.Errorf("%d calls with servers in ten minutes, want 4 every five minutes", len(got))
		}
		mustReport(t, w.newEvents(), "IllegalParam.Servers")
	})
}

// TestServerIsRefusedWithUnknownCode: the cloud refuses one server with a code that no table has. The others are served.
func TestServerIsRefusedWithUnknownCode(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.account.Change(func(s *emulator.Settings) { s.Flipped = []string{"nlb.ResourceNotFound.Ecs"} })
		w.addNodes("n1", "n2", "n3")
		w.account.Admin(http.MethodDelete, "/_emulator/instances/i-n2", "")
		w.put(newService("web", testkit.TCP(80)))
		w.passes("web", time.Minute)
		mustReport(t, w.newEvents(), "left out i-n2")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n3:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.calls()
		w.passes("web", time.Minute)
		if got := writes(w.calls()); len(got) > 10 {
			t.Errorf("%d writes in a minute: %v", len(got), got)
		}
	})
}

// TestUnreadSecurityGroupStaysJoined: a new process cannot read the security group of the source ranges, and the Service names others. The
// load balancer would be open to everybody without it.
func TestUnreadSecurityGroupStaysJoined(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			other := testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
				alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, "other"))(t)
			change := edits(testkit.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
			if named {
				change = append(change, with(annotation.SecurityGroupIDs, other))
			}
			w.serve(1, change...)
			before := w.balancer("web").SecurityGroups
			w.restart()
			w.account.Fault(`{"times":0,"action":"DescribeSecurityGroups","code":"ServiceUnavailable","status":503}`)
			w.calls()
			w.passes("web", 10*time.Minute)
			if after := w.balancer("web").SecurityGroups; !slices.Equal(after, before) {
				t.Errorf("security groups %v, want %v", after, before)
			}
			if got := writes(w.calls()); len(got) > 0 {
				t.Errorf("writes %v", got)
			}
			w.addNodes("n2")
			w.passes("web", 10*time.Minute)
			if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) {
				t.Errorf("listeners %v, want %v", got, want)
			}
		})
	}
}

// TestPortOfAnotherKeepsTheOldBalancer: a Service moves to an existing load balancer on which somebody else has its port. Its own one
// serves until the port is free.
func TestPortOfAnotherKeepsTheOldBalancer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		shared := w.existing("shared")
		w.serve(1, testkit.TCP(80))
		own := w.balancer("web").ID
		w.put(testkit.Service("other", testkit.Class(Class), with(annotation.LoadBalancerID, shared),
			with(annotation.ForceOverrideListeners, "true"), testkit.TCP(80)))
		w.converge("other")
		w.change("web", with(annotation.LoadBalancerID, shared), with(annotation.ForceOverrideListeners, "true"))
		w.passes("web", 10*time.Minute)
		if !w.exists(own) || len(w.listeners(own)) != 1 {
			t.Fatal("the load balancer that serves is gone")
		}
		w.remove("other")
		w.converge("other")
		w.passes("web", 10*time.Minute)
		if got, want := w.listeners(shared), []string{webOn80}; !slices.Equal(got, want) || w.exists(own) {
			t.Errorf("listeners %v, want %v; the old load balancer is there: %v", got, want, w.exists(own))
		}
	})
}

// TestFailingJobsStopNothingElse: jobs of one kind fail each time. What does not depend on them goes on, although no two jobs on a load
// balancer are under way at once.
func TestFailingJobsStopNothingElse(t *testing.T) {
	t.Parallel()
	t.Run("listener", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			w.serve(1, ports(tcpPort(443)))
			w.account.Fault(`{"times":0,"action":"CreateListener","job":"failed"}`)
			w.change("web", ports(tcpPort(80), tcpPort(81)), with(annotation.CrossZoneEnabled, "off"))
			w.calls()
			w.passes("web", 10*time.Minute)
			if got := w.listeners(w.balancer("web").ID); len(got) > 0 || w.balancer("web").CrossZone {
				t.Errorf("listeners %v, cross-zone %v", got, w.balancer("web").CrossZone)
			}
			// Tcp:81 fails alike: that is no other event.
			mustReport(t, w.newEvents(), "create listener tcp:80: TCP failed; the cloud did not state a reason")
			w.calls()
			w.passes("web", time.Hour)
			if got := writes(w.calls()); len(got) < 6 || len(got) > 80 {
				t.Errorf("%d writes in an hour: %v", len(got), got)
			}
			w.account.ClearFaults()
			w.passes("web", 10*time.Minute)
			if got := w.listeners(w.balancer("web").ID); len(got) != 2 {
				t.Errorf("listeners %v", got)
			}
			w.quiet("web")
		})
	})
	t.Run("security group", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			group := testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
				alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, "group"))(t)
			w.serve(1, ports(tcpPort(80), tcpPort(443)))
			w.account.Fault(`{"times":0,"action":"LoadBalancerJoinSecurityGroup","job":"failed"}`)
			w.change("web", with(annotation.SecurityGroupIDs, group))
			w.passes("web", 5*time.Minute)
			w.change("web", ports(tcpPort(80), tcpPort(81)), with(annotation.IdleTimeout, "100"))
			w.passes("web", 10*time.Minute)
			id := w.balancer("web").ID
			if got, want := w.listeners(id), []string{webOn80}; !slices.Equal(got, want) {
				t.Errorf("listeners %v, want %v: none opens without the security group", got, want)
			} else if idle := *w.listener(id, 0).IdleTimeout; idle != 100 {
				t.Errorf("the idle timeout is %d", idle)
			}
			w.account.ClearFaults()
			w.passes("web", 10*time.Minute)
			if got := len(w.listeners(id)); got != 2 || !slices.Contains(w.balancer("web").SecurityGroups, group) {
				t.Errorf("%d listeners, security groups %v", got, w.balancer("web").SecurityGroups)
			}
			w.quiet("web")
		})
	})
}
