package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

var tcp80, tcp81 = alicloud.ListenerKey{Port: 80, Protocol: "tcp"}, alicloud.ListenerKey{Port: 81, Protocol: "tcp"}

func servers(ids ...string) []alicloud.Backend {
	var all []alicloud.Backend
	for _, id := range ids {
		all = append(all, alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: 30080}, Weight: 100})
	}
	return all
}

// The steps of plans, with what they need as the difference of two models has it.

func create(vSwitches ...string) model.Step {
	return model.Step{Op: model.OpCreateLoadBalancer, Target: model.TargetLoadBalancer, VSwitchIDs: vSwitches,
		LoadBalancer: alicloud.LoadBalancer{AddressType: alicloud.AddressIntranet}}
}

func attribute(op model.Op, lb alicloud.LoadBalancer) model.Step {
	return model.Step{Op: op, Target: model.TargetLoadBalancer, LoadBalancer: lb}
}

func newGroup(name string, ids ...string) model.Step {
	return model.Step{Op: model.OpCreateGroup, Target: name, GroupName: name, New: servers(ids...)}
}

// backends is a step on the backend servers of a group that is there.
func backends(op model.Op, group string, from, to []alicloud.Backend) model.Step {
	return model.Step{Op: op, Target: group, GroupName: group, GroupID: "id-" + group, Old: from, New: to}
}

// listener is a step on a listener that uses a group.
func listener(op model.Op, key alicloud.ListenerKey, group string) model.Step {
	step := model.Step{Op: op, Target: model.TargetListener(key), Listener: alicloud.Listener{ListenerKey: key}, GroupName: group}
	if op == model.OpCreateListener || op == model.OpSetListener {
		step.Needs = []string{group}
	}
	return step
}

// there is a CLB with a group for each name, and with a listener on port 80 that uses the first one.
func there(groups ...model.Group) *model.Model {
	m := &model.Model{LoadBalancer: alicloud.LoadBalancer{ID: "lb-1"}, Groups: groups}
	if len(groups) > 0 {
		m.Listeners = []model.Listener{{ListenerKey: tcp80, GroupID: groups[0].ID, Status: alicloud.ListenerRunning, Description: "old"}}
	}
	return m
}

func group(name string, ids ...string) model.Group {
	return model.Group{ID: "id-" + name, Name: name, Backends: servers(ids...)}
}

// run carries out steps.
func run(ctx context.Context, cloud *recorder, memory *Memory, observed *model.Model, steps ...model.Step) (*Applier, error) {
	a := New(cloud, memory, observed)
	a.Create = func(_ context.Context, _ any, send func(token string) (string, error)) error {
		_, err := send("token")
		return err
	}
	return a, a.Run(ctx, model.Plan{Steps: steps})
}

// TestRun: the calls of a plan, in their order; which of them a refusal stops, and which go on.
func TestRun(t *testing.T) {
	t.Parallel()
	gone := answer(model.CodeLoadBalancerGone)
	twoPorts := []model.Step{
		newGroup("g-80", "i-1"), newGroup("g-81", "i-1"), listener(model.OpCreateListener, tcp80, "g-80"), listener(model.OpStartListener, tcp80,
			""),
		listener(model.OpCreateListener, tcp81, "g-81"), listener(model.OpStartListener, tcp81, ""),
	}
	attributes := []model.Step{
		attribute(model.OpSetName, alicloud.LoadBalancer{Name: "web"}), attribute(model.OpSetSpec, alicloud.LoadBalancer{Spec: "slb.s2.small"}),
		attribute(model.OpTag, alicloud.LoadBalancer{Tags: []alicloud.Tag{{Key: "k", Value: "v"}}}), newGroup("g-80"),
	}
	named, specified, tagged, grouped := "SetLoadBalancerName web", "SetInstanceSpec slb.s2.small", "TagLoadBalancer [{k v}]",
		"CreateVServerGroup g-80 []"
	for _, test := range []struct {
		name     string
		observed *model.Model
		steps    []model.Step
		cloud    recorder
		want     []string
		// fails says that an error is returned, doubts are the parts that have to be read again.
		fails  bool
		doubts []model.Part
	}{
		{
			name: "a new CLB comes before what is on it", observed: &model.Model{}, steps: append([]model.Step{create("vsw-a", "vsw-b")},
				twoPorts[:1]...),
			want: []string{"CreateLoadBalancer vsw-a token", "CreateVServerGroup g-80 [i-1]"},
		},
		{
			name: "a vSwitch without addresses: the next one", observed: &model.Model{}, steps: []model.Step{create("vsw-a", "vsw-b")},
			cloud: recorder{refuses: map[string]error{"vsw-a": answer("VSwitchAvailableIpNotExist")}},
			want:  []string{"CreateLoadBalancer vsw-a token = VSwitchAvailableIpNotExist", "CreateLoadBalancer vsw-b token"},
		},
		{
			name: "no vSwitch at all: no call", observed: &model.Model{}, steps: append([]model.Step{create()}, twoPorts...), fails: true,
			doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "a CLB that is refused stops everything", observed: &model.Model{}, steps: append([]model.Step{create("vsw-a", "vsw-b")},
				twoPorts...),
			cloud: recorder{refuses: map[string]error{"CreateLoadBalancer": answer("OverQuota")}},
			want:  []string{"CreateLoadBalancer vsw-a token = OverQuota"}, fails: true, doubts: []model.Part{model.PartLoadBalancer},
		},
		{
			name: "groups before their listeners, with the ids that they get", observed: there(), steps: twoPorts,
			want: []string{
				"CreateVServerGroup g-80 [i-1]", "CreateVServerGroup g-81 [i-1]", "CreateListener tcp:80 id-g-80", "StartListener tcp:80",
				"CreateListener tcp:81 id-g-81", "StartListener tcp:81",
			},
		},
		{
			name: "a group that is refused stops its listener only", observed: there(), steps: twoPorts,
			cloud: recorder{refuses: map[string]error{"CreateVServerGroup g-80": answer("Forbidden.RAM")}}, fails: true,
			doubts: []model.Part{model.PartGroups},
			want: []string{"CreateVServerGroup g-80 [i-1] = Forbidden.RAM", "CreateVServerGroup g-81 [i-1]", "CreateListener tcp:81 id-g-81",
				"StartListener tcp:81"},
		},
		{
			name: "a listener that is refused is not started, the other one is", observed: there(), steps: twoPorts,
			cloud: recorder{refuses: map[string]error{"CreateListener tcp:80": answer("InvalidParameter")}}, fails: true,
			doubts: []model.Part{model.PartListeners, model.PartGroups},
			want: []string{
				"CreateVServerGroup g-80 [i-1]", "CreateVServerGroup g-81 [i-1]", "CreateListener tcp:80 id-g-80 = InvalidParameter",
				"CreateListener tcp:81 id-g-81", "StartListener tcp:81",
			},
		},
		{
			name: "one that is busy leaves no doubt", observed: there(group("g-80")), steps: []model.Step{listener(model.OpStartListener, tcp80,
				"")},
			cloud: recorder{refuses: map[string]error{"StartListener": answer("ListenerProcessing")}}, fails: true,
			want: []string{"StartListener tcp:80 = ListenerProcessing"},
		},
		{
			name: "an attribute that is refused keeps no other from being set", observed: there(), steps: attributes,
			cloud: recorder{refuses: map[string]error{"SetLoadBalancerName": answer("InvalidParameter")}}, fails: true,
			doubts: []model.Part{model.PartLoadBalancer},
			want:   []string{named + " = InvalidParameter", specified, tagged, grouped},
		},
		{
			name: "no room for tags stops nothing", observed: there(), steps: attributes,
			cloud: recorder{refuses: map[string]error{"TagLoadBalancer": answer("TooManyTags")}},
			fails: true, doubts: []model.Part{model.PartLoadBalancer}, want: []string{named, specified, tagged + " = TooManyTags", grouped},
		},
		{
			name: "tags that are refused stop nothing", observed: there(), steps: attributes,
			cloud: recorder{refuses: map[string]error{"TagLoadBalancer": answer("Forbidden.RAM")}},
			fails: true, doubts: []model.Part{model.PartLoadBalancer},
			want: []string{named, specified, tagged + " = Forbidden.RAM", "CreateVServerGroup g-80 []"},
		},
		{
			name: "a CLB that is gone ends the plan", observed: there(), steps: twoPorts, cloud: recorder{refuses: map[string]error{"g-80": gone}},
			fails: true, doubts: []model.Part{model.PartGroups},
			want: []string{"CreateVServerGroup g-80 [i-1] = " + model.CodeLoadBalancerGone},
		},
		{
			name: "an action whose rate is used up is not called again in this plan", observed: there(), steps: twoPorts,
			cloud: recorder{refuses: map[string]error{"CreateListener tcp:80": answer("Throttling.User")}},
			fails: true, want: []string{"CreateVServerGroup g-80 [i-1]", "CreateVServerGroup g-81 [i-1]",
				"CreateListener tcp:80 id-g-80 = Throttling.User"},
		},
		{
			name: "a plan that is given up", observed: there(), steps: twoPorts,
			cloud: recorder{refuses: map[string]error{"g-81": alicloud.ErrInterrupted}}, fails: true,
			want: []string{"CreateVServerGroup g-80 [i-1]", "CreateVServerGroup g-81 [i-1] = " + alicloud.ErrInterrupted.Error()},
		},
		{
			name: "what is gone already is deleted", observed: there(group("g-80")),
			steps: []model.Step{listener(model.OpDeleteListener, tcp80, ""), {Op: model.OpDeleteGroup, Target: "g-80", GroupID: "id-g-80"}},
			cloud: recorder{refuses: map[string]error{"DeleteListener": answer("ListenerNotFound"),
				"DeleteVServerGroup": answer("ResourceNotFound.VServerGroup")}},
			want: []string{"DeleteListener tcp:80 = ListenerNotFound", "DeleteVServerGroup id-g-80 = ResourceNotFound.VServerGroup"},
		},
		{
			name: "a group that a listener still uses stays", observed: there(group("g-80")),
			steps: []model.Step{listener(model.OpDeleteListener, tcp80, ""), {Op: model.OpDeleteGroup, Target: "g-80", GroupID: "id-g-80",
				Needs: []string{"tcp:80"}}},
			cloud: recorder{refuses: map[string]error{"DeleteListener": answer("Forbidden.RAM")}}, fails: true,
			doubts: []model.Part{model.PartListeners, model.PartGroups},
			want:   []string{"DeleteListener tcp:80 = Forbidden.RAM"},
		},
		{
			name: "the list of the source ranges before the listener that refers to it", observed: there(group("g-80")),
			steps: []model.Step{
				{Op: model.OpCreateAccess, Target: model.TargetAccess, Access: alicloud.AccessList{Name: "k8s-clb"}},
				{Op: model.OpAddEntries, Target: model.TargetAccess, Access: alicloud.AccessList{Entries: []string{"10.0.0.0/8"}}},
				{Op: model.OpSetListener, Target: "tcp:80", GroupName: "g-80", Listener: alicloud.Listener{ListenerKey: tcp80,
					Attributes: alicloud.Attributes{alicloud.AttributeACLIDs: model.OwnAccessList}}},
			},
			want: []string{"CreateAccessList k8s-clb", "AddAccessListEntries acl-1 [10.0.0.0/8]", "SetListener tcp:80 id-g-80"},
		},
		{
			name: "an operation that nobody knows", observed: there(), steps: []model.Step{{Op: "dance", Target: "tcp:80"}}, fails: true,
			doubts: []model.Part{model.PartLoadBalancer},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, err := run(t.Context(), &test.cloud, &Memory{}, test.observed, test.steps...)
			if diff := cmp.Diff(test.want, test.cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(test.doubts, slices.Sorted(maps.Keys(a.Doubts))); diff != "" {
				t.Errorf("doubts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServersThatDoNotFit: backend servers that the cloud refuses keep no others out.
func TestServersThatDoNotFit(t *testing.T) {
	t.Parallel()
	bad, full := map[string]error{"bad": answer("InvalidInstanceId.NotFound")}, " = InstanceBackendServerNumberOverLimit"
	const isBad = " = InvalidInstanceId.NotFound"
	add, remove := model.OpAddBackends, model.OpRemoveBackends
	for _, test := range []struct {
		name     string
		observed *model.Model
		steps    []model.Step
		cloud    recorder
		limit    int
		want     []string
		// has are the servers of the first group in the end.
		has string
	}{
		{
			name: "more than a call takes", observed: there(group("g", "i-1")), steps: []model.Step{backends(add, "g", nil, servers("i-2", "i-3",
				"i-4"))}, cloud: recorder{perCall: 2},
			want: []string{"AddBackends id-g [i-2 i-3]", "AddBackends id-g [i-4]"}, has: "[i-1 i-2 i-3 i-4]",
		},
		{
			name: "a new group with more than a call takes", observed: there(), steps: []model.Step{newGroup("g", "i-1", "i-2", "i-3")},
			cloud: recorder{perCall: 2},
			want:  []string{"CreateVServerGroup g [i-1 i-2]", "AddBackends id-g [i-3]"}, has: "[i-1 i-2 i-3]",
		},
		{
			name: "one of four is refused: found by halves", observed: there(group("g")), steps: []model.Step{backends(add, "g", nil, servers("i-1",
				"i-2", "bad", "i-4"))}, cloud: recorder{refuses: bad},
			want: []string{"AddBackends id-g [i-1 i-2 bad i-4]" + isBad, "AddBackends id-g [i-1 i-2]", "AddBackends id-g [bad i-4]" + isBad,
				"AddBackends id-g [bad]" + isBad, "AddBackends id-g [i-4]"},
			has: "[i-1 i-2 i-4]",
		},
		{
			name: "five refused in a row: the rest waits", observed: there(group("g")), steps: []model.Step{backends(add, "g", nil, servers("bad1",
				"bad2", "bad3", "bad4", "bad5", "bad6"))},
			cloud: recorder{refuses: bad, perCall: 1},
			want: []string{
				"AddBackends id-g [bad1]" + isBad, "AddBackends id-g [bad2]" + isBad, "AddBackends id-g [bad3]" + isBad, "AddBackends id-g [bad4]" +
					isBad, "AddBackends id-g [bad5]" + isBad,
			}, has: "[]",
		},
		{
			name: "the group is there all the same, and its listener", observed: there(), steps: []model.Step{newGroup("g", "i-1", "bad"),
				listener(model.OpCreateListener, tcp80, "g")}, cloud: recorder{refuses: bad},
			want: []string{
				"CreateVServerGroup g [i-1 bad]" + isBad, "CreateVServerGroup g []", "AddBackends id-g [i-1 bad]" + isBad, "AddBackends id-g [i-1]",
				"AddBackends id-g [bad]" + isBad, "CreateListener tcp:80 id-g",
			}, has: "[i-1]",
		},
		{
			name:     "one of two that take the place of others is refused: its predecessor goes, because the other one serves",
			observed: there(group("g", "i-1", "i-2")),
			steps:    []model.Step{backends(model.OpReplaceBackends, "g", servers("i-1", "i-2"), servers("i-3", "bad"))},
			cloud:    recorder{refuses: bad},
			want: []string{
				"ReplaceBackends id-g [i-1 i-2] [i-3 bad]" + isBad, "ReplaceBackends id-g [i-1] [i-3]", "ReplaceBackends id-g [i-2] [bad]" + isBad,
				"AddBackends id-g [bad]" + isBad, "RemoveBackends id-g [i-2]",
			}, has: "[i-3]",
		},
		{
			name: "the only one that is to take the place of another one is refused: that one stays", observed: there(group("g", "i-1")),
			steps: []model.Step{backends(model.OpReplaceBackends, "g", servers("i-1"), servers("bad"))}, cloud: recorder{refuses: bad},
			want: []string{"ReplaceBackends id-g [i-1] [bad]" + isBad, "AddBackends id-g [bad]" + isBad}, has: "[i-1]",
		},
		{
			name: "no room: removals first", observed: there(group("g", "i-1", "i-2")), cloud: recorder{most: 2, servers: 2},
			steps: []model.Step{backends(add, "g", nil, servers("i-3")), backends(remove, "g", servers("i-1"), nil)},
			want:  []string{"AddBackends id-g [i-3]" + full, "RemoveBackends id-g [i-1]", "AddBackends id-g [i-3]"}, has: "[i-2 i-3]",
		},
		{
			name: "no room for all: as many as fit, and no further call", observed: there(group("g")), cloud: recorder{most: 3},
			steps: []model.Step{backends(add, "g", nil, servers("i-1", "i-2", "i-3", "i-4")), backends(add, "g", nil, servers("i-5"))},
			want:  []string{"AddBackends id-g [i-1 i-2 i-3 i-4]" + full, "AddBackends id-g [i-1 i-2]", "AddBackends id-g [i-3]"},
			has:   "[i-1 i-2 i-3]",
		},
		{
			name: "others have the room: no call for more", observed: there(group("g", "i-1")), limit: 2, steps: []model.Step{backends(add, "g",
				nil, servers("i-2", "i-3"))},
			want: []string{"AddBackends id-g [i-2]"}, has: "[i-1 i-2]",
		},
		{
			name: "others have all the room: an empty group is created", observed: there(), limit: -1, steps: []model.Step{newGroup("g", "i-1")},
			want: []string{"CreateVServerGroup g []"}, has: "[]",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := New(&test.cloud, &Memory{}, test.observed)
			if test.limit != 0 {
				a.Limit(max(test.limit, 0))
			}
			_ = a.Run(t.Context(), model.Plan{Steps: test.steps})
			if diff := cmp.Diff(test.want, test.cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if has := ids(a.model.Groups[0].Backends); has != test.has {
				t.Errorf("servers %s, want %s", has, test.has)
			}
		})
	}
}

// TestServersRefusedBefore: what was refused twice waits, and is reported all the same.
func TestServersRefusedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var memory Memory
		pass := func() ([]string, *Applier, error) {
			cloud := &recorder{refuses: map[string]error{"bad": answer("QuotaExceeded.Instance")}}
			a, err := run(t.Context(), cloud, &memory, there(group("g", "i-1")), backends(model.OpAddBackends, "g", nil, servers("bad")))
			return cloud.calls, a, err
		}
		for i, want := range []int{1, 1, 0} { // the second attempt comes at once
			calls, a, err := pass()
			if len(calls) != want || err == nil {
				t.Errorf("attempt %d: calls %v, error %v; want %d and an error", i, calls, err, want)
			}
			if want > 0 && (!a.RefusedServer || !slices.Equal(a.Exhausted, []string{"bad"})) {
				t.Errorf("attempt %d: refused %v, exhausted %v", i, a.RefusedServer, a.Exhausted)
			}
		}
		time.Sleep(minRefusedFor)
		if calls, _, _ := pass(); len(calls) != 1 {
			t.Errorf("a minute later: %v", calls)
		}
	})
}

// TestQuotaOfACLB: once it has refused one, no call is made of the same kind, in this plan and for a minute, unless the plan is another one
// or something was deleted.
func TestQuotaOfACLB(t *testing.T) {
	t.Parallel()
	refuses := map[string]error{"CreateListener": answer("ListenerNumberOverLimit")}
	create80, create81 := listener(model.OpCreateListener, tcp80, "g"), listener(model.OpCreateListener, tcp81, "g")
	for _, test := range []struct {
		name string
		// then comes between two plans that are to create both listeners.
		then  func(t *testing.T, memory *Memory)
		calls int
	}{
		{"the same again at once", nil, 0},
		{"the same again a minute later", func(*testing.T, *Memory) { time.Sleep(time.Minute) }, 1},
		{"another listener was deleted", func(t *testing.T, memory *Memory) {
			t.Helper()
			_, _ = run(t.Context(), &recorder{}, memory, there(group("g")), listener(model.OpDeleteListener, tcp80, ""))
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var memory Memory
				first := &recorder{refuses: refuses}
				_, _ = run(t.Context(), first, &memory, there(group("g")), create80, create81)
				if len(first.calls) != 1 {
					t.Errorf("calls %v, want one", first.calls)
				}
				_, _ = run(t.Context(), &recorder{refuses: refuses}, &memory, there(group("g")), create80,
					create81) // the first refusal may pass by itself
				if test.then != nil {
					test.then(t, &memory)
				}
				again := &recorder{refuses: refuses}
				_, err := run(t.Context(), again, &memory, there(group("g")), create80, create81)
				if len(again.calls) != test.calls || err == nil {
					t.Errorf("calls %v and error %v, want %d and the refusal", again.calls, err, test.calls)
				}
			})
		})
	}
	t.Run("a plan with another listener", func(t *testing.T) {
		t.Parallel()
		var memory Memory
		for range 2 {
			_, _ = run(t.Context(), &recorder{refuses: refuses}, &memory, there(group("g")), create80)
		}
		other := &recorder{}
		if _, err := run(t.Context(), other, &memory, there(group("g")), create81); err != nil || len(other.calls) != 1 {
			t.Errorf("calls %v, error %v", other.calls, err)
		}
	})
}

// TestReplaceListener: between the deletion of a listener and its successor nothing serves the port, so that everything is ready before,
// and a refusal brings the old one back.
func TestReplaceListener(t *testing.T) {
	t.Parallel()
	http80 := alicloud.ListenerKey{Port: 80, Protocol: "http"}
	observed := func() *model.Model {
		m := there(group("g", "i-1"))
		m.Listeners[0].Extensions = []alicloud.DomainExtension{{ID: "de-0", Domain: "a.example"}}
		return m
	}
	step := func() model.Step {
		s := listener(model.OpReplaceListener, http80, "g")
		s.Replaced = &observed().Listeners[0]
		return s
	}
	for _, test := range []struct {
		name  string
		cloud recorder
		want  []string
		// again is how many calls the same plan makes at once.
		again int
	}{
		{"taken", recorder{}, []string{"ReserveReplacement tcp:80 http:80", "DeleteListener tcp:80", "CreateListener http:80 id-g",
			"StartListener http:80"}, 4},
		{"no place under the rate limit: the old one stays", recorder{refuses: map[string]error{"Reserve": errors.New("no place")}},
			[]string{"ReserveReplacement tcp:80 http:80 = no place"}, 1},
		{"the old one cannot go", recorder{refuses: map[string]error{"DeleteListener": answer("Forbidden.RAM")}},
			[]string{"ReserveReplacement tcp:80 http:80", "DeleteListener tcp:80 = Forbidden.RAM"}, 2},
		{"the new one is refused: the old one comes back with all that it had",
			recorder{refuses: map[string]error{"CreateListener http": answer("InvalidParameter")}}, []string{
				"ReserveReplacement tcp:80 http:80", "DeleteListener tcp:80", "CreateListener http:80 id-g = InvalidParameter",
				"CreateListener tcp:80 id-g", "StartListener tcp:80", "CreateDomainExtension 80 a.example",
			}, 6},
		{"nobody knows whether the new one is there", recorder{refuses: map[string]error{"CreateListener http": answer("InternalError")}},
			[]string{
				"ReserveReplacement tcp:80 http:80", "DeleteListener tcp:80", "CreateListener http:80 id-g = InternalError",
			}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var memory Memory
				_, _ = run(t.Context(), &test.cloud, &memory, observed(), step())
				if diff := cmp.Diff(test.want, test.cloud.calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				again := recorder{refuses: test.cloud.refuses}
				_, _ = run(t.Context(), &again, &memory, observed(), step())
				if len(again.calls) != test.again {
					t.Errorf("the second attempt makes the calls %v, want %d", again.calls, test.again)
				}
			})
		})
	}
	t.Run("refused twice: not tried for a minute", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var memory Memory
			for i, want := range []int{6, 6, 0} {
				cloud := recorder{refuses: map[string]error{"CreateListener http": answer("InvalidParameter")}}
				if a, err := run(t.Context(), &cloud, &memory, observed(), step()); len(cloud.calls) != want || err == nil || !a.Denied(nil)["tcp:80"] {
					t.Errorf("attempt %d: calls %v, error %v, denied %v", i, cloud.calls, err, a.Denied(nil))
				}
			}
		})
	})
}

// TestListenerWaitsForServers: a listener leaves a group that serves only for one that does; meanwhile the old one follows the nodes.
func TestListenerWaitsForServers(t *testing.T) {
	t.Parallel()
	move := func(awaits bool) model.Step {
		s := listener(model.OpSetListener, tcp80, "new")
		s.Awaits, s.Meanwhile = awaits, []model.Step{backends(model.OpAddBackends, "old", nil, servers("i-9"))}
		return s
	}
	const moved, stays = "SetListener tcp:80 id-new", "SetListener tcp:80 id-old"
	for _, test := range []struct {
		name     string
		old, new []string
		awaits   bool
		want     []string
	}{
		{"the new one serves", []string{"i-1"}, []string{"i-2"}, true, []string{moved}},
		{"the new one is empty", []string{"i-1"}, nil, true, []string{stays, "AddBackends id-old [i-9]"}},
		{"the new one is empty and is to be so", []string{"i-1"}, nil, false, []string{moved}},
		{"neither serves", nil, nil, true, []string{moved}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var cloud recorder
			_, err := run(t.Context(), &cloud, &Memory{}, there(group("old", test.old...), group("new", test.new...)), move(test.awaits))
			if diff := cmp.Diff(test.want, cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if _, waits := errors.AsType[*problem.WaitError](err); waits != (test.want[0] == stays) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestTurns: where Services take turns with creations, the call is made in the turn, and only there.
func TestTurns(t *testing.T) {
	t.Parallel()
	var cloud recorder
	a := New(&cloud, &Memory{}, &model.Model{})
	notNow := errors.New("not now")
	a.Turn = func(func() error) error { return notNow }
	if err := a.Run(t.Context(), model.Plan{Steps: []model.Step{create("vsw-a")}}); !errors.Is(err, notNow) || len(cloud.calls) > 0 {
		t.Errorf("error %v, calls %v", err, cloud.calls)
	}
}

// TestEndedContext: no call is made any more.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var cloud recorder
	if _, err := run(ctx, &cloud, &Memory{}, there(), newGroup("g"), listener(model.OpCreateListener, tcp80, "g")); !errors.Is(err,
		context.Canceled) || len(cloud.calls) > 0 {
		t.Errorf("error %v, calls %v", err, cloud.calls)
	}
}

// TestChargeOfToday: the cloud shows the old internet charge type until the day of the bills ends, and an hour longer.
func TestChargeOfToday(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 1, 1, 22, 0, 0, 0, BillingZone)
	pending := AskedCharge("lb-1", "paybytraffic", asked)
	for name, test := range map[string]struct {
		id   string
		at   time.Time
		want string
	}{
		"the same day":         {"lb-1", asked.Add(time.Hour), "paybytraffic"},
		"just after midnight":  {"lb-1", asked.Add(2*time.Hour + time.Minute), "paybytraffic"},
		"an hour later":        {"lb-1", asked.Add(3 * time.Hour), "paybybandwidth"},
		"another CLB":          {"lb-2", asked, "paybybandwidth"},
		"asked from elsewhere": {"lb-1", asked.UTC(), "paybytraffic"},
	} {
		lb := alicloud.LoadBalancer{ID: test.id, InternetChargeType: "paybybandwidth"}
		if pending.Correct(&lb, test.at); lb.InternetChargeType != test.want {
			t.Errorf("%s: %s, want %s", name, lb.InternetChargeType, test.want)
		}
	}
	lb := alicloud.LoadBalancer{ID: "lb-1", InternetChargeType: "paybybandwidth"}
	if (PendingCharge{}).Correct(&lb, asked); lb.InternetChargeType != "paybybandwidth" {
		t.Error("nothing was asked for, and corrects all the same")
	}
}
