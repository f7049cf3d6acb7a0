package nlb

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// operation is something that writes.
type operation struct {
	name string
	// prepare is what was done before, act what writes.
	prepare, act func(w *world)
	// check looks at what came of it.
	check func(t *testing.T, w *world)
	// cloud changes the cloud that it happens in.
	cloud []func(*cloud.Config)
}

// operations are those of one Service, and of several that share NLBs.
func operations() []operation { return append(ownOperations(), groupOperations()...) }

func ownOperations() []operation {
	created := func(change ...func(*corev1.Service)) func(*world) {
		return func(w *world) {
			w.serve(2, append([]func(*corev1.Service){testkube.TCP(80), udp(53)}, change...)...)
		}
	}
	change := func(changes ...func(*corev1.Service)) func(*world) {
		return func(w *world) { w.change("web", changes...) }
	}
	serves := func(want ...string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, want) {
				t.Errorf("listeners %v, want %v", got, want)
			}
			if groups := w.groups("web"); len(groups) != len(want) {
				t.Errorf("%d groups for %d listeners", len(groups), len(want))
			}
		}
	}
	const tcp80, udp53 = "TCP:80 i-n1:30080=100 i-n2:30080=100", "UDP:53 i-n1:30053=100 i-n2:30053=100"
	return append(moreOperations(), []operation{
		{"create", func(w *world) { w.addNodes("n1", "n2") }, func(w *world) {
			w.put(newService("web", testkube.TCP(80), udp(53)))
		}, serves(tcp80, udp53), nil},
		{"delete", created(), func(w *world) { w.remove("web") }, func(t *testing.T, w *world) {
			t.Helper()
			if left := len(w.balancers("web")) + len(w.groups("web")); left > 0 || len(w.get("web").Finalizers) > 0 {
				t.Errorf("%d things are left, finalizers %v", left, w.get("web").Finalizers)
			}
		}, nil},
		{"port", created(), change(func(svc *corev1.Service) {
			svc.Spec.Ports[0] = testkube.Port(81, corev1.ProtocolTCP)
		}), serves("TCP:81 i-n1:30081=100 i-n2:30081=100", udp53), nil},
		{"nodes", created(), func(w *world) { w.addNodes("n3"); w.deleteNode("n1") },
			serves("TCP:80 i-n2:30080=100 i-n3:30080=100", "UDP:53 i-n2:30053=100 i-n3:30053=100"), nil},
		{"protocol", created(), change(with(annotation.ProtocolPort, "tcpssl:80"), with(annotation.CertID, "cert-1")),
			serves("TCPSSL:80 i-n1:30080=100 i-n2:30080=100", udp53), nil},
		{"weights", created(), change(with(annotation.DefaultWeight, "7")),
			serves("TCP:80 i-n1:30080=7 i-n2:30080=7", "UDP:53 i-n1:30053=7 i-n2:30053=7"), nil},
		{"attributes", created(), change(
			with(annotation.Name, "web"), with(annotation.CrossZoneEnabled, "off"), with(annotation.AddressType, "intranet"),
			with(annotation.IdleTimeout, "20"),
			with(annotation.Scheduler, "rr"), with(annotation.AdditionalTags, "a=1"), with(annotation.DeleteProtection, "off"),
		), serves(tcp80, udp53), nil},
		{"reverted",
			created(with(annotation.Name, "web"), with(annotation.CrossZoneEnabled, "off"), with(annotation.AdditionalTags, "a=1"),
				with(annotation.IdleTimeout, "20")),
			change(without(annotation.Name), without(annotation.CrossZoneEnabled), without(annotation.AdditionalTags),
				without(annotation.IdleTimeout)), serves(tcp80, udp53), nil},
		{"ranges", created(), change(func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		}), serves(tcp80, udp53), nil},
		{"no ranges", created(func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }),
			change(func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil }), serves(tcp80, udp53), nil},
		{"type of groups", created(), change(with(annotation.ServerGroupType, "Ip")), nil, nil},
		{"certificates",
			created(with(annotation.ProtocolPort, "tcpssl:80"), with(annotation.CertID, "cert-1"), with(annotation.AdditionalCertIDs, "cert-2")),
			change(with(annotation.AdditionalCertIDs, "cert-3"), with(annotation.CertID, "cert-2")), nil, nil},
	}...)
}

// moreOperations are those with settings that few Services have.
func moreOperations() []operation {
	web := func(change ...func(*corev1.Service)) func(*world) {
		return func(w *world) { w.serve(1, append(slices.Clone(change), testkube.TCP(80))...) }
	}
	change := func(changes ...func(*corev1.Service)) func(*world) {
		return func(w *world) { w.change("web", changes...) }
	}
	ranges := func(blocks ...string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = blocks }
	}
	return []operation{
		{"other ranges", web(ranges("192.0.2.0/24")), change(ranges("198.51.100.0/24")), nil, nil},
		{"zones", web(), change(with(annotation.ZoneMaps, "cn-hangzhou-b:vsw-b,cn-hangzhou-c:vsw-c")), inZones(2),
			[]func(*cloud.Config){threeZones}},
		{"IPv6 on", web(with(annotation.IPVersion, "DualStack")), change(with(annotation.IPv6AddressType, "internet")),
			balancerHas("IPv6 internet", func(lb *alicloud.NLB) bool { return lb.IPv6AddressType == alicloud.NLBInternet }), nil},
		{"IPv6 off", web(with(annotation.IPVersion, "DualStack"), with(annotation.IPv6AddressType, "internet")),
			change(without(annotation.IPv6AddressType)),
			balancerHas("IPv6 intranet", func(lb *alicloud.NLB) bool { return lb.IPv6AddressType == alicloud.NLBIntranet }), nil},
		{"bandwidth package", web(with(annotation.BandwidthPackageID, "cbwp-1")), change(with(annotation.BandwidthPackageID, "cbwp-2")),
			hasPackage("cbwp-2"), nil},
		{"stopped listener", func(w *world) {
			web()(w)
			w.account.Raw(api.VersionNLB, "StopListener", map[string]string{"ListenerId": w.listener(w.balancer("web").ID, 0).ID}, nil)
			w.later(5 * settle)
		}, (*world).drift, func(t *testing.T, w *world) {
			t.Helper()
			if l := w.listener(w.balancer("web").ID, 0); l.Status != alicloud.NLBListenerRunning {
				t.Errorf("the listener is %s", l.Status)
			}
		}, nil},
		{"preserved", web(with(annotation.PreserveOnDelete, "true")), func(w *world) { w.remove("web") }, func(t *testing.T, w *world) {
			t.Helper()
			kept := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
			if len(kept) != 1 || len(w.balancers("web"))+len(w.groups("web"))+len(w.get("web").Finalizers) > 0 {
				t.Errorf("load balancers %+v, finalizers %v", kept, w.get("web").Finalizers)
			}
		}, nil},
		{"other load balancer", func(w *world) {
			a := w.existing("first")
			w.existing("second")
			web(without(annotation.ZoneMaps), with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"),
				with(annotation.AdditionalTags, "a=1"))(w)
		}, func(w *world) { w.change("web", with(annotation.LoadBalancerID, w.named("second"))) }, func(t *testing.T, w *world) {
			t.Helper()
			if got, left := w.listeners(w.named("second")), w.listeners(w.named("first")); !slices.Equal(got, []string{webOn80}) || len(left) > 0 {
				t.Errorf("listeners %v, left %v", got, left)
			}
			if got, left := w.tagKeys(w.named("second")), w.tagKeys(w.named("first")); !slices.Equal(got, []string{"a"}) || len(left) > 0 {
				t.Errorf("tags %v, left %v", got, left)
			}
		}, nil},
		{"existing load balancer", func(w *world) {
			w.existing("first")
			web()(w)
		}, func(w *world) {
			w.change("web", with(annotation.LoadBalancerID, w.named("first")), with(annotation.ForceOverrideListeners, "true"))
		}, func(t *testing.T, w *world) {
			t.Helper()
			w.later(30 * settle)
			if got, left := w.listeners(w.named("first")), w.balancers("web"); !slices.Equal(got, []string{webOn80}) || len(left) > 0 {
				t.Errorf("listeners %v, left %v", got, left)
			}
		}, nil},
		{"removed while it moves", func(w *world) {
			a := w.existing("first")
			w.existing("second")
			web(without(annotation.ZoneMaps), with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"),
				with(annotation.AdditionalTags, "a=1"))(w)
		}, func(w *world) {
			w.removeWhileMoving(with(annotation.LoadBalancerID, w.named("second")))
		}, func(t *testing.T, w *world) {
			t.Helper()
			for _, name := range []string{"first", "second"} {
				if id := w.named(name); len(w.listeners(id))+len(w.tagKeys(id)) > 0 {
					t.Errorf("left on the %s: %v, %v", name, w.listeners(id), w.tagKeys(id))
				}
			}
			if len(w.groups("web"))+len(w.get("web").Finalizers) > 0 {
				t.Errorf("left: %v %v", w.groups("web"), w.get("web").Finalizers)
			}
		}, nil},
		{"removed while it moves to its own", func(w *world) {
			a := w.existing("first")
			web(without(annotation.ZoneMaps), with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"),
				with(annotation.AdditionalTags, "a=1"))(w)
		}, func(w *world) {
			w.removeWhileMoving(without(annotation.LoadBalancerID), with(annotation.ZoneMaps, twoZones))
		}, func(t *testing.T, w *world) {
			t.Helper()
			if id := w.named("first"); len(w.listeners(id))+len(w.tagKeys(id)) > 0 {
				t.Errorf("left: %v, %v", w.listeners(id), w.tagKeys(id))
			}
			if len(w.balancers("web"))+len(w.groups("web"))+len(w.get("web").Finalizers) > 0 {
				t.Errorf("left: %v %v %v", w.balancers("web"), w.groups("web"), w.get("web").Finalizers)
			}
		}, nil},
	}
}

// tagKeys are the keys of the tags of a load balancer.
func (w *world) tagKeys(id string) []string {
	w.t.Helper()
	var keys []string
	for _, tag := range testkit.Must(w.account.Client.GetNLB(w.t.Context(), id))(w.t).Tags {
		keys = append(keys, tag.Key)
	}
	slices.Sort(keys)
	return keys
}

// named is the id of the load balancer with a name.
func (w *world) named(name string) string {
	w.t.Helper()
	found := testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{Names: []string{name}}))(w.t)
	if len(found) != 1 {
		w.t.Fatalf("%d load balancers have the name %s", len(found), name)
	}
	return found[0].ID
}

// TestEveryWriteIsTried: [TestEveryWriteMayGoWrong] makes every write go wrong that the engine has, also where it tries a sample.
func TestEveryWriteIsTried(t *testing.T) {
	t.Parallel()
	tried, actions := sets.New[string](), writesOf(t, operations())
	for _, wrong := range testkit.SampleWrites(actions, len(everyFault())) {
		tried.Insert(actions[wrong.Operation][wrong.Write])
	}
	var never []string
	for _, action := range alicloud.Actions() {
		if slices.Contains(action.Features, alicloud.FeatureNLB) && !action.IsRead() && !tried.Has(action.Name) {
			never = append(never, action.Name)
		}
	}
	if len(never) > 0 {
		t.Errorf("never tried: %v", never)
	}
}

// TestEveryWriteMayGoWrong: each write of each operation is refused, done without an answer, lost on the way, and carried out by a job
// that fails. What follows converges, leaks nothing and then writes nothing.
func TestEveryWriteMayGoWrong(t *testing.T) {
	t.Parallel()
	goWrong(t, operations(), everyFault())
}

// fault is one way in which a write goes wrong, as fields of the emulator's admin API.
type fault struct{ name, fields string }

// mainFaults are one of each kind: refused, done without an answer, undone later.
func mainFaults() []fault {
	return []fault{{"refused", `"code":"ServiceUnavailable","status":503`}, {"answer lost", `"drop":"after"`}, {"job fails", `"job":"failed"`}}
}

func everyFault() []fault {
	return append(mainFaults(), fault{"request lost", `"drop":"before"`}, fault{"busy", `"code":"Conflict.Lock"`},
		fault{"throttled", `"code":"Throttling.User"`})
}

// goWrong has each write of each operation meet each of the faults.
func goWrong(t *testing.T, operations []operation, faults []fault) {
	t.Helper()
	actions := writesOf(t, operations)
	for _, wrong := range testkit.SampleWrites(actions, len(faults)) {
		op, fault := operations[wrong.Operation], faults[wrong.Way]
		t.Run(fmt.Sprintf("%s/%s/%d %s", op.name, fault.name, wrong.Write, actions[wrong.Operation][wrong.Write]), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				op.prepare(w)
				w.account.Fault(fmt.Sprintf(`{"action":"*","kind":"write","after":%d,"times":1,%s}`, wrong.Write, fault.fields))
				op.act(w)
				w.ends(t, op)
			}, op.cloud...)
		})
	}
}

// writesOf returns the writes of each operation.
func writesOf(t *testing.T, operations []operation) (actions [][]string) {
	t.Helper()
	for _, op := range operations {
		actions = append(actions, op.writes(t))
	}
	return actions
}

// undisturbed are the writes of the operations that were carried out, by name.
var undisturbed sync.Map

// writes returns the writes of an operation without faults.
func (op operation) writes(t *testing.T) []string {
	t.Helper()
	if known, ok := undisturbed.Load(op.name); ok {
		return known.([]string) //nolint:forcetypeassert // see below
	}
	var actions []string
	t.Run(op.name, func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			op.prepare(w)
			w.calls()
			op.act(w)
			w.converge("web")
			actions = writes(w.calls())
			if op.check != nil {
				op.check(t, w)
			}
			w.quiet("web")
		}, op.cloud...)
	})
	undisturbed.Store(op.name, actions)
	return actions
}

// ends checks what comes of an operation in the end.
func (w *world) ends(t *testing.T, op operation) {
	t.Helper()
	w.converge("web")
	w.account.ClearFaults()
	w.restart()
	w.converge("web")
	time.Sleep(5 * settle) // a job of a process that was killed is still under way
	if op.check != nil {
		op.check(t, w)
	}
	w.quiet("web")
}

// TestKilledAfterEveryWrite: the process dies after each write. The next one converges.
func TestKilledAfterEveryWrite(t *testing.T) {
	t.Parallel()
	killed(t, operations())
}

// killed ends the process after each write of each operation.
func killed(t *testing.T, operations []operation) {
	t.Helper()
	for row, op := range operations {
		for _, i := range testkit.Sample(row, len(op.writes(t))) {
			t.Run(fmt.Sprintf("%s/%d", op.name, i+1), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					op.prepare(w)
					w.transport.diesAfter(i + 1)
					op.act(w)
					if err := w.try("web"); err == nil {
						t.Log("it ended before it was killed")
					}
					w.restart()
					w.ends(t, op)
				}, op.cloud...)
			})
		}
	}
}
