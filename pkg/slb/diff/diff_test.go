package diff_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

var webName = types.NamespacedName{Namespace: testkube.Namespace, Name: "web"}

// fixture is a Service and its nodes under construction.
type fixture struct {
	svc   *corev1.Service
	nodes []*corev1.Node
}

func newFixture(ports ...int32) *fixture {
	c := &fixture{svc: testkube.Service("web", testkube.TCP(ports...)), nodes: testkube.Nodes("a", "b")}
	annotate(c.svc, annotation.AddressType, "intranet")
	return c
}

// build returns the wanted state.
func (c *fixture) build() *model.Model {
	params, _ := annotation.Of(c.svc)
	desired, _ := build.Build(build.Input{
		Service: c.svc, Params: params, Config: config.Config{ClusterID: "c1", VSwitchIDs: []string{"vsw-a"}}, ClusterID: "c1",
		Facts: backend.Facts{Nodes: backend.Nodes(c.nodes, testkube.InstanceID, time.Now())},
	})
	return desired
}

func annotate(svc *corev1.Service, suffix annotation.Suffix, value string) {
	svc.Annotations[suffix.Key()] = value
}

// reality makes the observed model of what stands when desired was applied.
func reality(desired *model.Model) *model.Model {
	actual := &model.Model{LoadBalancer: desired.Create, Reused: desired.Reused}
	actual.LoadBalancer.ID, actual.LoadBalancer.Address = "lb-1", "10.1.0.9"
	for i, group := range desired.Groups {
		group.ID = "rsp-" + string(rune('1'+i))
		group.Backends = append([]alicloud.Backend{}, group.Backends...)
		actual.Groups = append(actual.Groups, group)
	}
	for _, listener := range desired.Listeners {
		attributes := alicloud.Attributes{}
		for _, set := range []alicloud.Attributes{listener.Create, listener.Attributes} {
			maps.Copy(attributes, set)
		}
		groupID := "" // of a listener that redirects
		if group := actual.Group(listener.Group); group != nil {
			groupID = group.ID
		}
		actual.Listeners = append(actual.Listeners, model.Listener{
			ListenerKey: listener.ListenerKey, Description: listener.Description, GroupID: groupID,
			Status: alicloud.ListenerRunning, Attributes: attributes,
		})
	}
	return actual
}

func planLines(plan model.Plan) []string {
	if plan.Empty() {
		return nil
	}
	return strings.Split(plan.String(), "\n")
}

func TestDiff(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	server := func(id, description string, weight int) alicloud.Backend {
		return alicloud.Backend{
			BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: 30080}, Weight: weight, Description: description,
		}
	}
	for _, test := range []struct {
		name   string
		want   func(*fixture)
		actual func(*model.Model)
		steps  []string
	}{
		{"equal", nil, nil, nil},
		{"backend server missing", nil, func(m *model.Model) { m.Groups[0].Backends = m.Groups[0].Backends[:1] },
			[]string{"add backends: " + group + ": i-b:30080 weight 100"}},
		{"backend server too many", nil, func(m *model.Model) { m.Groups[0].Put([]alicloud.Backend{server("i-z", m.Groups[0].Name, 100)}) },
			[]string{"remove backends: " + group + ": i-z:30080 weight 100"}},
		{"backend server replaced", nil, func(m *model.Model) { m.Groups[0].Backends[1].ServerID = "i-z" },
			[]string{"replace backends: " + group + ": i-z:30080 weight 100 -> i-b:30080 weight 100"}},
		{"weight", nil, func(m *model.Model) { m.Groups[0].Backends[0].Weight = 1 },
			[]string{"set backends: " + group + ": i-a:30080 weight 1 -> i-a:30080 weight 100"}},
		{"weight left alone", func(c *fixture) { annotate(c.svc, annotation.IgnoreWeightUpdate, "on") }, func(m *model.Model) {
			m.Groups[0].Backends[0].Weight = 1
		}, nil},
		{"somebody else's backend server", nil, func(m *model.Model) { m.Groups[0].Put([]alicloud.Backend{server("i-z", "mine", 100)}) }, nil},
		{"our backend server put in by somebody else", nil, func(m *model.Model) { m.Groups[0].Backends[0] = server("i-a", "mine", 5) }, nil},
		{"backend server too many while in doubt", func(c *fixture) { c.nodes = append(c.nodes, testkube.Node("c", testkube.ProviderID(""))) },
			func(m *model.Model) { m.Groups[0].Put([]alicloud.Backend{server("i-z", m.Groups[0].Name, 100)}) }, nil},
		{"known backend server too many while in doubt", func(c *fixture) {
			c.nodes = []*corev1.Node{testkube.Node("a"), testkube.Node("b", testkube.Silent(time.Time{})), testkube.Node("c", testkube.ProviderID(""))}
		}, func(m *model.Model) { m.Groups[0].Put([]alicloud.Backend{server("i-b", m.Groups[0].Name, 100)}) },
			[]string{"remove backends: " + group + ": i-b:30080 weight 100"}},
		{"listener missing", nil, func(m *model.Model) { m.Listeners = nil },
			[]string{`create listener: tcp:80: HealthCheckSwitch="on" Scheduler="rr"`, "start listener: tcp:80"}},
		{"listener stopped", nil, func(m *model.Model) { m.Listeners[0].Status = alicloud.ListenerStopped }, []string{"start listener: tcp:80"}},
		{"unmanaged attribute changed by hand", nil, func(m *model.Model) { m.Listeners[0].Attributes["Scheduler"] = "wlc" }, nil},
		{"managed attribute changed by hand", func(c *fixture) { annotate(c.svc, annotation.Scheduler, "rr") }, func(m *model.Model) {
			m.Listeners[0].Attributes["Scheduler"] = "wlc"
		},
			[]string{`set listener: tcp:80: Scheduler="wlc" -> Scheduler="rr"`}},
		{"health check port by another spelling", func(c *fixture) { annotate(c.svc, annotation.HealthCheckConnectPort, "-520") },
			func(m *model.Model) { delete(m.Listeners[0].Attributes, "HealthCheckConnectPort") }, nil},
		{"listener of ours too many", nil, func(m *model.Model) {
			m.Listeners = append(m.Listeners,
				model.Listener{ListenerKey: alicloud.ListenerKey{Port: 99, Protocol: "tcp"}, Description: "k8s/99/web/default/c1"})
		}, []string{"delete listener: tcp:99"}},
		{"listener of a human", nil, func(m *model.Model) {
			m.Listeners = append(m.Listeners, model.Listener{ListenerKey: alicloud.ListenerKey{Port: 99, Protocol: "tcp"}, Description: "by hand"})
		}, nil},
		{"listener of another Service on our port", nil, func(m *model.Model) { m.Listeners[0].Description = "k8s/80/other/default/c1" }, nil},
		{"protocol change", func(c *fixture) { annotate(c.svc, annotation.ProtocolPort, "http:80") }, func(m *model.Model) {
			m.Listeners[0].Protocol = alicloud.ProtocolTCP
			m.Listeners[0].Attributes = alicloud.Attributes{}
		}, []string{
			`replace listener: http:80: tcp:80 -> HealthCheck="off" Scheduler="rr" StickySession="off"`,
		}},
		{"forwarding begins", func(c *fixture) {
			c.svc.Spec.Ports = append(c.svc.Spec.Ports, testkube.Port(443, corev1.ProtocolTCP))
			annotate(c.svc, annotation.ProtocolPort, "http:80,https:443")
			annotate(c.svc, annotation.CertID, "cert-1")
			annotate(c.svc, annotation.ForwardPort, "80:443")
		},
			func(m *model.Model) { m.Listeners[1].Attributes = alicloud.Attributes{"ListenerForward": "off"} }, []string{
				`replace listener: http:80: http:80 ListenerForward="off" -> ForwardPort="443" HealthCheck="off" ListenerForward="on" Scheduler="rr" StickySession="off"`,
			}},
		{"forwarding stands", func(c *fixture) {
			annotate(c.svc, annotation.ProtocolPort, "http:80")
			annotate(c.svc, annotation.ForwardPort, "80:443")
		}, nil, nil},
		{"no annotation about forwarding", func(c *fixture) { annotate(c.svc, annotation.ProtocolPort, "http:80") }, nil, nil},
		{"group of ours too many", nil, func(m *model.Model) {
			m.Groups = append(m.Groups,
				model.Group{ID: "rsp-9", Name: "k8s/1/web/default/c1", Backends: []alicloud.Backend{server("i-a", "k8s/1/web/default/c1", 1)}})
		}, []string{"delete group: k8s/1/web/default/c1: rsp-9"}},
		{"second group of the name", nil, func(m *model.Model) {
			m.Groups = append([]model.Group{{ID: "rsp-9", Name: m.Groups[0].Name}}, m.Groups...)
		},
			[]string{"delete group: " + group + ": rsp-9"}},
		{"group with somebody else's backend server", nil, func(m *model.Model) {
			m.Groups = append(m.Groups,
				model.Group{ID: "rsp-9", Name: "k8s/1/web/default/c1", Backends: []alicloud.Backend{server("i-a", "mine", 1)}})
		}, nil},
		{"group of another Service", nil, func(m *model.Model) {
			m.Groups = append(m.Groups, model.Group{ID: "rsp-9", Name: "k8s/1/other/default/c1"})
		}, nil},
		{"tag removed", nil, func(m *model.Model) {
			m.LoadBalancer.Tags = m.LoadBalancer.Tags[1:]
		}, []string{"set tags: " + mark.TagOwner + "=a0f5e8a1cweb"}},
		{"tag of others", nil, func(m *model.Model) {
			m.LoadBalancer.Tags = append(m.LoadBalancer.Tags, alicloud.Tag{Key: "x", Value: "y"})
		}, nil},
		{"unmanaged protection", nil, func(m *model.Model) { m.LoadBalancer.DeleteProtection = "off" }, nil},
		{"managed protection", func(c *fixture) { annotate(c.svc, annotation.DeleteProtection, "on") }, func(m *model.Model) {
			m.LoadBalancer.DeleteProtection = "off"
		},
			[]string{"set delete protection: off -> on"}},
		{"modification protection", func(c *fixture) { annotate(c.svc, annotation.ModificationProtection, "NonProtection") },
			func(m *model.Model) { m.LoadBalancer.ModificationProtection = "ConsoleProtection" },
			[]string{"set modification protection: ConsoleProtection -> NonProtection"}},
		{"name", func(c *fixture) { annotate(c.svc, annotation.Name, "shop") }, func(m *model.Model) {
			m.LoadBalancer.Name = "x"
		}, []string{"set name: x -> shop"}},
		{"address type cannot change", nil, func(m *model.Model) { m.LoadBalancer.AddressType = "internet" }, nil},
		{"unknown charge type", func(c *fixture) { annotate(c.svc, annotation.InstanceChargeType, "PayBySpec") }, func(m *model.Model) {
			m.LoadBalancer.InstanceChargeType = ""
		}, nil},
		{"charge type", func(c *fixture) { annotate(c.svc, annotation.InstanceChargeType, "PayByCLCU") }, func(m *model.Model) {
			m.LoadBalancer.InstanceChargeType = "PayBySpec"
		},
			[]string{"set instance charge type: PayBySpec -> PayByCLCU"}},
		{"charge type cannot go back", func(c *fixture) { annotate(c.svc, annotation.InstanceChargeType, "PayBySpec") }, func(m *model.Model) {
			m.LoadBalancer.InstanceChargeType = "PayByCLCU"
		}, nil},
		{"specification", func(c *fixture) {
			annotate(c.svc, annotation.InstanceChargeType, "PayBySpec")
			annotate(c.svc, annotation.Spec, "slb.s2.small")
		},
			func(m *model.Model) { m.LoadBalancer.Spec = "slb.s1.small" }, []string{"set specification: slb.s1.small -> slb.s2.small"}},
		{"bandwidth", func(c *fixture) {
			annotate(c.svc, annotation.AddressType, "internet")
			annotate(c.svc, annotation.ChargeType, "paybybandwidth")
			annotate(c.svc, annotation.Bandwidth, "80")
		}, func(m *model.Model) { m.LoadBalancer.Bandwidth = 50 },
			[]string{"set internet charge type: paybybandwidth 50 Mbit/s -> paybybandwidth 80 Mbit/s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80)
			if test.want != nil {
				test.want(c)
			}
			desired := c.build()
			actual := reality(desired)
			if test.actual != nil {
				test.actual(actual)
			}
			plan := diff.Diff(desired, actual, webName, "c1")
			if diff := cmp.Diff(test.steps, planLines(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUrgencyOfReplacements: it is urgent that a backend server is replaced, unless it still works.
func TestUrgencyOfReplacements(t *testing.T) {
	t.Parallel()
	for _, balances := range []bool{false, true} {
		desired := newFixture(80).build()
		actual := reality(desired)
		actual.Groups[0].Backends[1].ServerID = "i-z"
		desired.Groups[0].Balances = balances
		if plan := diff.Diff(desired, actual, webName, "c1"); len(plan.Steps) != 1 || plan.Steps[0].Balances != balances {
			t.Errorf("Balances %v: %v", balances, plan.Steps)
		}
	}
}

// TestDeadLeaveInOneCall: of backend servers that take no traffic, none stays for the sake of a swap, unless nothing else serves.
func TestDeadLeaveInOneCall(t *testing.T) {
	t.Parallel()
	ops := func(plan model.Plan) []string {
		var ops []string
		for i := range plan.Steps {
			ops = append(ops, fmt.Sprintf("%s -%d +%d", plan.Steps[i].Op, len(plan.Steps[i].Old), len(plan.Steps[i].New)))
		}
		return ops
	}
	swap := []string{"replace backends -1 +1", "remove backends -1 +0"}
	for name, test := range map[string]struct {
		dead     sets.Set[string]
		servers  []string
		expected []string
	}{
		"all that leave are dead": {sets.New("i-y", "i-z"), []string{"i-a", "i-y", "i-z"},
			[]string{"remove backends -2 +0", "add backends -0 +1"}},
		"one of them works": {sets.New("i-y"), []string{"i-a", "i-y", "i-z"}, swap},
		"nobody knows":      {nil, []string{"i-a", "i-y", "i-z"}, swap},
		"as many come":      {sets.New("i-z"), []string{"i-a", "i-z"}, []string{"replace backends -1 +1"}},
		"nothing else serves": {sets.New("i-x", "i-y", "i-z"), []string{"i-x", "i-y", "i-z"},
			[]string{"replace backends -2 +2", "remove backends -1 +0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired := newFixture(80).build()
			actual := reality(desired)
			group := &actual.Groups[0]
			one := group.Backends[0]
			group.Backends = nil
			for _, id := range test.servers {
				one.ServerID = id
				group.Backends = append(group.Backends, one)
			}
			desired.Groups[0].Dead = test.dead
			if diff := cmp.Diff(test.expected, ops(diff.Diff(desired, actual, webName, "c1"))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListenerWithoutAMark: on a port of the Service, one that leads where ours is to lead is ours, described anew. Any other one is
// somebody else's, and is taken over on an existing CLB only.
func TestListenerWithoutAMark(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		reused   bool
		change   func(*model.Listener)
		written  bool
		conflict string
	}{
		{"ours, described anew", false, func(l *model.Listener) { l.Description = "mine" }, true, ""},
		{"ours, in another group", false, func(l *model.Listener) { l.GroupID = "rsp-9" }, true, ""},
		{"another group, on ours", false, func(l *model.Listener) { l.Description, l.GroupID = "mine", "rsp-9" }, false,
			`port 80 is in use by listener tcp:80 of an unknown owner, with the description "mine"`},
		{"no group, on ours", false, func(l *model.Listener) { l.Description, l.GroupID = "", "" }, false,
			"port 80 is in use by listener tcp:80 of an unknown owner, without a description"},
		{"another group, on an existing one", true, func(l *model.Listener) { l.Description, l.GroupID = "mine", "rsp-9" }, true, ""},
		{"another Service's, in our group", false, func(l *model.Listener) { l.Description = "k8s/80/shop/default/c1" }, false,
			"port 80 is in use by listener tcp:80 of Service default/shop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			desired := newFixture(80).build()
			desired.Reused, desired.Override = test.reused, test.reused
			actual := reality(desired)
			test.change(&actual.Listeners[0])
			plan := diff.Diff(desired, actual, webName, "c1")
			written := slices.ContainsFunc(plan.Steps, func(s model.Step) bool { return s.Target == model.TargetListener(desired.Listeners[0].ListenerKey) })
			var conflict string
			for _, p := range plan.Problems {
				conflict += p.Message
			}
			if written != test.written || conflict != test.conflict {
				t.Errorf("written %v, conflict %q, want %v, %q", written, conflict, test.written, test.conflict)
			}
		})
	}
}

func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	desired := newFixture(80).build()
	want := []string{
		"create load balancer: intranet a0f5e8a1cweb",
		"create group: k8s/30080/web/default/c1: i-a:30080 weight 100, i-b:30080 weight 100",
		`create listener: tcp:80: HealthCheckSwitch="on" Scheduler="rr"`,
		"start listener: tcp:80",
	}
	if diff := cmp.Diff(want, planLines(diff.Diff(desired, nil, webName, "c1"))); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestDiffOfAccessLists: the list goes once no listener refers to it, and not before.
func TestDiffOfAccessLists(t *testing.T) {
	t.Parallel()
	list := &alicloud.AccessList{ID: "acl-9", Entries: []string{"192.0.2.0/24"}}
	for _, test := range []struct {
		name       string
		attributes alicloud.Attributes
		want       []string
	}{
		{"attached", alicloud.Attributes{"AclStatus": "on", "AclId": "acl-9"},
			[]string{`set listener: tcp:80: AclStatus="on" -> AclStatus="off"`}},
		{"still referred to", alicloud.Attributes{"AclStatus": "off", "AclId": "acl-9"}, nil},
		{"free", alicloud.Attributes{"AclStatus": "off"}, []string{"delete access control list: source ranges: acl-9"}},
		{"another list attached", alicloud.Attributes{"AclStatus": "on", "AclId": "acl-1"},
			[]string{"delete access control list: source ranges: acl-9"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			desired := newFixture(80).build()
			actual := reality(desired)
			actual.Access = list
			maps.Copy(actual.Listeners[0].Attributes, test.attributes)
			if diff := cmp.Diff(test.want, planLines(diff.Diff(desired, actual, webName, "c1"))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
