package deploy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestServersLeaveThoughOthersCannotCome: what is gone leaves a group whatever becomes of those that are to come, but never the last ones
// that take traffic.
func TestServersLeaveThoughOthersCannotCome(t *testing.T) {
	t.Parallel()
	add, remove := onServers(model.OpAddServers, "a", "new"), func(ids ...string) model.Step {
		return onServers(model.OpRemoveServers, "a", ids...)
	}
	forbidden, throttled := answer("Forbidden.RAM"), answer("Throttling.User")
	refused, full := answer("ResourceNotFound.Ecs"), answer("QuotaExceeded.Instance")
	for _, test := range []struct {
		name   string
		has    []string
		leaves []string
		adding error
		held   bool
		want   []string
	}{
		{"one stays", []string{"i-1", "i-2"}, []string{"i-1"}, forbidden, false,
			[]string{"AddNLBServers sgp-a [new] = Forbidden.RAM", "RemoveNLBServers sgp-a [i-1]"}},
		{"one stays, rate used up", []string{"i-1", "i-2"}, []string{"i-1"}, throttled, false,
			[]string{"AddNLBServers sgp-a [new] = Throttling.User", "RemoveNLBServers sgp-a [i-1]"}},
		{"one stays, jobs failed", []string{"i-1", "i-2"}, []string{"i-1"}, nil, true, []string{"RemoveNLBServers sgp-a [i-1]"}},
		{"none stays", []string{"i-1", "i-2"}, []string{"i-1", "i-2"}, forbidden, false, []string{"AddNLBServers sgp-a [new] = Forbidden.RAM"}},
		{"none stays, jobs failed", []string{"i-1"}, []string{"i-1"}, nil, true, nil},
		{"none stays, and the replacement is refused", []string{"i-1", "i-2"}, []string{"i-1", "i-2"}, refused, false,
			[]string{"AddNLBServers sgp-a [new] = ResourceNotFound.Ecs"}},
		{"none stays, and a quota keeps the replacement out: room is made", []string{"i-1", "i-2"}, []string{"i-1", "i-2"}, full, false,
			[]string{"AddNLBServers sgp-a [new] = QuotaExceeded.Instance", "RemoveNLBServers sgp-a [i-2]"}},
		{"a group that is not there", []string{"i-1", "i-2"}, []string{"i-1"}, answer("ResourceNotFound.serverGroup"), false,
			[]string{"AddNLBServers sgp-a [new] = ResourceNotFound.serverGroup"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var cloud recorder
			if test.adding != nil {
				cloud.refuses = map[string]error{"Add": test.adding}
			}
			a := applier(&cloud, &Memory{}, there(group("a", test.has...)))
			a.Held = func(work Work) error {
				if test.held && work.Op == model.OpAddServers {
					return errors.New("its job failed")
				}
				return nil
			}
			if err := a.Run(t.Context(), model.Plan{Steps: []model.Step{add, newListener(81, "a"), remove(test.leaves...)}}); err == nil {
				t.Error("nothing is reported")
			}
			calls := cloud.calls
			if len(calls) > 1 && calls[1] == "CreateNLBListener 81 sgp-a" { // one that was left out keeps no listener out
				calls = append(calls[:1:1], calls[2:]...)
			}
			if diff := cmp.Diff(test.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServersThatNobodyNeedsLeave: a group that is to be empty becomes empty, also while others of the plan lack servers.
func TestServersThatNobodyNeedsLeave(t *testing.T) {
	t.Parallel()
	cloud := recorder{refuses: map[string]error{"Add": answer("ResourceNotFound.Ecs")}}
	_ = applier(&cloud, &Memory{}, there(group("a", "i-1"), group("b", "i-1"))).Run(t.Context(), model.Plan{Steps: []model.Step{ //nolint:errcheck // see the calls
		onServers(model.OpAddServers, "a", "new"), onServers(model.OpRemoveServers, "b", "i-1"),
	}})
	if diff := cmp.Diff([]string{"AddNLBServers sgp-a [new] = ResourceNotFound.Ecs", "RemoveNLBServers sgp-b [i-1]"},
		cloud.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestCallsTakeFewerServersThanAssumed: no document says with which code the cloud refuses a call that names too many servers. Also
// removals, and changes of weights, find out how many it takes, and one server that is refused keeps no other one in.
func TestCallsTakeFewerServersThanAssumed(t *testing.T) {
	t.Parallel()
	all := []string{"i-1", "i-2", "i-3", "i-4"}
	tooMany := answer("IllegalParam.Whatever")
	for _, test := range []struct {
		name    string
		op      model.Op
		refuses map[string]error
		want    []string
		waits   bool
	}{
		{"removal", model.OpRemoveServers, map[string]error{"i-3 i-4": tooMany},
			[]string{"RemoveNLBServers sgp-a [i-1 i-2 i-3 i-4] = IllegalParam.Whatever", "RemoveNLBServers sgp-a [i-1 i-2]"}, true},
		{"weights", model.OpUpdateServers, map[string]error{"i-3 i-4": tooMany},
			[]string{"UpdateNLBServers sgp-a [i-1 i-2 i-3 i-4] = IllegalParam.Whatever", "UpdateNLBServers sgp-a [i-1 i-2]"}, true},
		{"one is refused", model.OpRemoveServers, map[string]error{"i-1": tooMany},
			[]string{"RemoveNLBServers sgp-a [i-1 i-2 i-3 i-4] = IllegalParam.Whatever", "RemoveNLBServers sgp-a [i-1 i-2] = IllegalParam.Whatever",
				"RemoveNLBServers sgp-a [i-1] = IllegalParam.Whatever", "RemoveNLBServers sgp-a [i-2]"}, true},
		{"no permission: it is not for the servers", model.OpRemoveServers, map[string]error{"i-1": answer("Forbidden.RAM")},
			[]string{"RemoveNLBServers sgp-a [i-1 i-2 i-3 i-4] = Forbidden.RAM"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := recorder{refuses: test.refuses}
			a := applier(&cloud, &Memory{}, there(group("a", all...)))
			_ = a.Run(t.Context(), model.Plan{Steps: []model.Step{onServers(test.op, "a", all...)}}) //nolint:errcheck // see the calls
			if diff := cmp.Diff(test.want, cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if a.Waits != test.waits {
				t.Errorf("waits for jobs: %v", a.Waits)
			}
		})
	}
}

// TestExpendableServers: which of the servers that are to leave may do so while others cannot come.
func TestExpendableServers(t *testing.T) {
	t.Parallel()
	drained := group("a", "i-1", "i-2")
	drained.Servers[1].Weight = 0
	leaving := group("a", "i-1", "i-2")
	leaving.Servers[1].Status = alicloud.NLBServerRemoving
	for name, test := range map[string]struct {
		group model.Group
		want  string
	}{
		"another one serves":         {group("a", "i-1", "i-2"), "[i-1]"},
		"the other one drains":       {drained, "[]"},
		"the other one is leaving":   {leaving, "[]"},
		"it takes no traffic either": {model.Group{Servers: drained.Servers[1:]}, "[i-1]"},
	} {
		servers := servers("i-1")
		if name == "it takes no traffic either" {
			servers[0].Weight = 0
		}
		if got := ids(expendableServers(&test.group, servers, errors.New("no"))); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
