package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestPutBack: what worked is put back when the cloud refuses what was to take its place, which is tried again later, and not often.
func TestPutBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, edit func(w *world) func(*corev1.Service)
		fault        string
		// has returns what the load balancer has, empty for nothing.
		has func(lb *alicloud.NLB) string
	}{
		"a bandwidth package that is refused": {
			func(*world) func(*corev1.Service) { return with(annotation.BandwidthPackageID, "cbwp-1") },
			func(*world) func(*corev1.Service) { return with(annotation.BandwidthPackageID, "cbwp-2") },
			`{"action":"AttachCommonBandwidthPackageToLoadBalancer","times":1,"code":"ResourceNotFound.BandwidthPackage","status":404}`,
			func(lb *alicloud.NLB) string { return lb.BandwidthPackageID },
		},
		"a bandwidth package whose jobs fail": {
			func(*world) func(*corev1.Service) { return with(annotation.BandwidthPackageID, "cbwp-1") },
			func(*world) func(*corev1.Service) { return with(annotation.BandwidthPackageID, "cbwp-2") },
			`{"action":"AttachCommonBandwidthPackageToLoadBalancer","times":2,"job":"failed"}`,
			func(lb *alicloud.NLB) string { return lb.BandwidthPackageID },
		},
		"security groups of another type that are refused": {
			func(w *world) func(*corev1.Service) {
				return with(annotation.SecurityGroupIDs, w.makeSecurityGroups("normal", "a")[0])
			},
			func(w *world) func(*corev1.Service) {
				return with(annotation.SecurityGroupIDs, w.makeSecurityGroups("enterprise", "b")[0])
			},
			`{"action":"LoadBalancerJoinSecurityGroup","after":1,"times":1,"code":"OperationDenied.SecurityGroup","status":400}`,
			func(lb *alicloud.NLB) string { return strings.Join(lb.SecurityGroups, " ") },
		},
		"security groups of another type whose jobs fail": {
			func(w *world) func(*corev1.Service) {
				return with(annotation.SecurityGroupIDs, w.makeSecurityGroups("normal", "a")[0])
			},
			func(w *world) func(*corev1.Service) {
				return with(annotation.SecurityGroupIDs, w.makeSecurityGroups("enterprise", "b")[0])
			},
			`{"action":"LoadBalancerJoinSecurityGroup","after":1,"times":2,"job":"failed"}`,
			func(lb *alicloud.NLB) string { return strings.Join(lb.SecurityGroups, " ") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), test.before(w))
				lb := w.balancer("web")
				old := test.has(&lb)
				if old == "" {
					t.Fatal("it has nothing")
				}
				w.account.Fault(test.fault)
				w.change("web", test.edit(w))
				w.calls()
				start, without, put := time.Now(), time.Duration(0), false
				for time.Since(start) < time.Hour {
					wait, err := w.Reconcile(t.Context(), w.get("web"))
					if err != nil {
						wait = 10 * time.Second
					}
					wait = min(max(wait, time.Second), 10*time.Second)
					time.Sleep(wait)
					lb = w.balancer("web")
					switch test.has(&lb) {
					case "":
						without += wait
					case old:
						put = put || without > 0
					}
				}
				if !put || without > 30*time.Second {
					t.Errorf("put back: %v; it had none for %s", put, without)
				}
				if now := test.has(&lb); now == old || now == "" {
					t.Errorf("after an hour it has %q", now)
				}
				if calls := writes(w.calls()); len(calls) > 12 {
					t.Errorf("writes %v", calls)
				}
			})
		})
	}
}

// TestServersOfALongNameAreKnown: the servers of a Service in a group of others are its own, however long its names are.
func TestServersOfALongNameAreKnown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.ClusterID = strings.Repeat("c", 120)
		w.restart()
		w.addNodes("n1", "x")
		w.deleteNode("x")
		id, group := w.existing("by-hand"), w.groupByHand("shop")
		w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.VGroupPort, group+":80")))
		w.converge("web")
		w.quiet("web")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31080 })
		w.converge("web")
		w.later(5 * settle)
		if got := w.servers(group); !slices.Equal(got, []string{"i-n1:31080=100", "i-x:9999=50"}) {
			t.Errorf("servers %v", got)
		}
		w.remove("web")
		w.converge("web")
		w.later(5 * settle)
		if got := w.servers(group); !slices.Equal(got, []string{"i-x:9999=50"}) || len(w.get("web").Finalizers) > 0 {
			t.Errorf("servers %v, finalizers %v", got, w.get("web").Finalizers)
		}
	})
}

// TestJoinedGroupIsLeftWhileNobodyLooks: a group of others that the annotation named before the process began is left all the same, also
// where no listener of the Service leads to it.
func TestJoinedGroupIsLeftWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(w *world, b string){
		"another group": func(w *world, b string) { w.change("web", with(annotation.VGroupPort, b+":80")) },
		"none":          func(w *world, _ string) { w.change("web", without(annotation.VGroupPort)) },
		"removed": func(w *world, b string) {
			w.change("web", with(annotation.VGroupPort, b+":80"))
			w.remove("web")
		},
	} {
		for _, override := range []string{"true", "false"} {
			t.Run(name+", override "+override, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.addNodes("n1", "x")
					w.deleteNode("x")
					id, a, b := w.existing("by-hand"), w.groupByHand("shop-a"), w.groupByHand("shop-b")
					w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
						with(annotation.ForceOverrideListeners, override),
						with(annotation.VGroupPort, a+":80")))
					w.converge("web")
					act(w, b)
					w.restart()
					w.converge("web")
					w.later(5 * settle)
					if got := w.servers(a); !slices.Equal(got, []string{"i-x:9999=50"}) {
						t.Errorf("servers %v", got)
					}
				})
			})
		}
	}
}

// TestJobsThatCannotBeRead: what is there shows whether they have ended; an event says which right is missing.
func TestJobsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults []string
		within time.Duration
		says   string
	}{
		"one of two actions": {[]string{`{"action":"ListAsynJobs","times":0,"code":"Forbidden.RAM","status":403}`}, 35 * time.Second, ""},
		"neither is allowed": {[]string{`{"action":"ListAsynJobs","times":0,"code":"Forbidden.RAM","status":403}`,
			`{"action":"GetJobStatus","times":0,"code":"Forbidden.RAM","status":403}`}, 55 * time.Second, "nlb:ListAsynJobs"},
		"others use the rate": {[]string{`{"action":"ListAsynJobs","times":0,"code":"Throttling.User","status":400}`}, 55 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				for _, fault := range test.faults {
					w.account.Fault(fault)
				}
				w.addNodes("n1")
				w.put(newService("web", testkube.TCP(80)))
				start := time.Now()
				w.converge("web")
				if took := time.Since(start); took > test.within {
					t.Errorf("it took %s", took)
				}
				if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{"TCP:80 i-n1:30080=100"}) {
					t.Errorf("listeners %v", got)
				}
				w.drift()
				w.converge("web")
				events := w.newEvents()
				if test.says != "" {
					mustReport(t, events, test.says)
				}
				if slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "SyncLoadBalancerFailed") }) {
					t.Errorf("events %q", events)
				}
			})
		})
	}
}

// TestLastingFailureIsFewEvents: a failure that differs in ids only is one event.
func TestLastingFailureIsFewEvents(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"not found":   `{"action":"CreateListener","times":0,"code":"ResourceNotFound.serverGroup","status":404}`,
		"duplicate":   `{"action":"AddServersToServerGroup","times":0,"code":"DuplicatedParam.Server","status":400}`,
		"failed jobs": `{"action":"CreateListener","times":0,"job":"failed"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.account.Fault(fault)
				w.addNodes("n1")
				w.put(newService("web", testkube.TCP(80), testkube.TCP(81)))
				for range 2 {
					w.patiently("web")
				}
				if events := w.newEvents(); len(events) > 10 {
					t.Errorf("%d events:\n%s", len(events), strings.Join(events, "\n"))
				}
			})
		})
	}
}

// TestUntaggedGroup: a server group that lost its tags gets them again, and goes with its Service.
func TestUntaggedGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		group := w.groups("web")[0]
		var keys []string
		for _, tag := range group.Tags {
			keys = append(keys, tag.Key)
		}
		testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagGroup, []string{group.ID}, keys))
		w.drift()
		w.converge("web")
		if got := w.groups("web"); len(got) != 1 || len(got[0].Tags) != len(keys) {
			t.Errorf("groups %v", got)
		}
		w.quiet("web")
	})
}
