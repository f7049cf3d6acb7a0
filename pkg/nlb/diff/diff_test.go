package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

var owner = mark.Owner{Service: types.NamespacedName{Namespace: "ns", Name: "web"}, ClusterID: "c1"}

func server(id string, weight int, description string) alicloud.NLBServer {
	return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: id, Type: alicloud.NLBServerECS, Port: 30080}, Weight: weight,
		Description: description}
}

func group(id, port string, servers ...alicloud.NLBServer) model.Group {
	name := owner.NLBGroupName(port, "TCP")
	return model.Group{NLBGroup: alicloud.NLBGroup{ID: id, Name: name, Type: "Instance", Protocol: "TCP"}, Servers: servers, Description: name}
}

func listener(id string, port int, description, groupID, groupName string) model.Listener {
	return model.Listener{
		NLBListener: alicloud.NLBListener{ID: id, Port: port, Protocol: "TCP", Status: alicloud.NLBListenerRunning,
			NLBListenerSettings: alicloud.NLBListenerSettings{Description: &description, ServerGroupID: &groupID}},
		Group: groupName,
	}
}

func stepsOf(plan model.Plan) []string {
	var steps []string
	for i := range plan.Steps {
		steps = append(steps, string(plan.Steps[i].Op)+" "+plan.Steps[i].Target)
	}
	return steps
}

// TestAdditionsComeFirst: at no moment of a plan there is less than before and after it.
func TestAdditionsComeFirst(t *testing.T) {
	t.Parallel()
	mine := owner.NLBGroupName("30080", "TCP")
	actual := &model.Model{
		LoadBalancer: alicloud.NLB{ID: "nlb-1", Status: alicloud.NLBActive},
		Groups: []model.Group{group("sgp-1", "30080", server("i-1", 100, mine), server("i-2", 100, mine), server("i-3", 100, "a human's")),
			group("sgp-2", "30081")},
		Listeners: []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", ""),
			listener("lsn-2", 81, owner.NLBMark("81", "TCP"), "sgp-2", ""), listener("lsn-3", 99, "by hand", "sgp-9", "")},
	}
	desired := &model.Model{
		Groups: []model.Group{group("", "30080", server("i-2", 100, mine), server("i-4", 100, mine)), group("", "30082")},
		Listeners: []model.Listener{listener("", 80, owner.NLBMark("80", "TCP"), "", mine),
			listener("", 82, owner.NLBMark("82", "TCP"), "", owner.NLBGroupName("30082", "TCP"))},
	}
	want := []string{
		"add servers group:" + mine, "create server group group:" + owner.NLBGroupName("30082", "TCP"), "create listener tcp:82",
		"delete listener tcp:81",
		"remove servers group:" + mine, "delete server group group:sgp-2",
	}
	if diff := cmp.Diff(want, stepsOf(Diff(desired, actual, owner))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestDoubtRemovesNothing: a backend set that may be incomplete takes out only what is known to be gone.
func TestDoubtRemovesNothing(t *testing.T) {
	t.Parallel()
	mine := owner.NLBGroupName("30080", "TCP")
	actual := &model.Model{
		LoadBalancer: alicloud.NLB{ID: "nlb-1"},
		Groups:       []model.Group{group("sgp-1", "30080", server("i-1", 100, mine), server("i-2", 100, mine))},
		Listeners:    []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", "")},
	}
	wanted := group("", "30080", server("i-3", 100, mine))
	wanted.Doubt, wanted.Gone = true, sets.New("i-2")
	desired := &model.Model{Groups: []model.Group{wanted}, Listeners: []model.Listener{listener("", 80, owner.NLBMark("80", "TCP"), "", mine)}}
	plan := Diff(desired, actual, owner)
	if diff := cmp.Diff([]string{"add servers group:" + mine, "remove servers group:" + mine}, stepsOf(plan)); diff != "" {
		t.Fatalf("steps (-want +got):\n%s", diff)
	}
	if removed := plan.Steps[1].Servers; len(removed) != 1 || removed[0].ID != "i-2" {
		t.Errorf("removed %v", removed)
	}
}

// TestProtocolIsReplaced: TCP and TCPSSL cannot share a port, so the old listener goes first.
func TestProtocolIsReplaced(t *testing.T) {
	t.Parallel()
	mine := owner.NLBGroupName("30080", "TCP")
	actual := &model.Model{
		LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080")},
		Listeners: []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", "")},
	}
	secure := listener("", 80, owner.NLBMark("80", "TCPSSL"), "", mine)
	secure.Protocol = alicloud.NLBTCPSSL
	plan := Diff(&model.Model{Groups: []model.Group{group("", "30080")}, Listeners: []model.Listener{secure}}, actual, owner)
	if diff := cmp.Diff([]string{"delete listener tcp:80", "create listener tcp:80"}, stepsOf(plan)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestDeadLeaveFirst: servers that are dead leave before others come, in all groups before the first one gets any. Where no server takes
// traffic until others come, and of those that work, none leaves before.
func TestDeadLeaveFirst(t *testing.T) {
	t.Parallel()
	mine := owner.NLBGroupName("30080", "TCP")
	weighted := func(weight int, ids ...string) []alicloud.NLBServer {
		var all []alicloud.NLBServer
		for _, id := range ids {
			all = append(all, server(id, weight, mine))
		}
		return all
	}
	servers := func(ids ...string) []alicloud.NLBServer { return weighted(100, ids...) }
	for _, test := range []struct {
		name       string
		has, wants []alicloud.NLBServer
		dead       sets.Set[string]
		want       []string
	}{
		{"dead beside one that stays", servers("a", "b"), servers("b", "c"), sets.New("a"), []string{"remove servers a", "add servers c"}},
		{"working beside one that stays", servers("a", "b"), servers("b", "c"), nil, []string{"add servers c", "remove servers a"}},
		{"dead and working", servers("a", "b", "c"), servers("c", "d"), sets.New("a"),
			[]string{"remove servers a", "add servers d", "remove servers b"}},
		{"all dead", servers("a", "b"), servers("c"), sets.New("a", "b"), []string{"add servers c", "remove servers a b"}},
		{"none stays", servers("a", "b"), servers("c"), sets.New("a"), []string{"add servers c", "remove servers a b"}},
		{"the one that stays is dead, too", servers("a", "b"), servers("b", "c"), sets.New("a", "b"),
			[]string{"add servers c", "remove servers a"}},
		{"the one that stays has no weight yet", append(weighted(0, "b"), servers("a")...), servers("b", "c"), sets.New("a"),
			[]string{"add servers c", "update servers b", "remove servers a"}},
		{"the one that stays is to have no weight", servers("a", "b"), append(weighted(0, "b"), servers("c")...), sets.New("a"),
			[]string{"add servers c", "update servers b", "remove servers a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			actual := &model.Model{
				LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080", test.has...)},
				Listeners: []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", "")},
			}
			desired := &model.Model{
				Groups: []model.Group{group("", "30080", test.wants...)}, Dead: test.dead,
				Listeners: []model.Listener{listener("", 80, owner.NLBMark("80", "TCP"), "", mine)},
			}
			if diff := cmp.Diff(test.want, serverSteps(Diff(desired, actual, owner))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("two groups", func(t *testing.T) {
		t.Parallel()
		other := owner.NLBGroupName("30081", "TCP")
		listeners := func(first, second, firstName, secondName string) []model.Listener {
			return []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), first, firstName),
				listener("lsn-2", 81, owner.NLBMark("81", "TCP"), second, secondName)}
		}
		actual := &model.Model{
			LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Listeners: listeners("sgp-1", "sgp-2", "", ""),
			Groups: []model.Group{group("sgp-1", "30080", servers("b")...), group("sgp-2", "30081", servers("a", "b")...)},
		}
		desired := &model.Model{
			Groups: []model.Group{group("", "30080", servers("b", "c")...), group("", "30081", servers("b", "d")...)}, Dead: sets.New("a"),
			Listeners: listeners("", "", mine, other),
		}
		want := []string{"remove servers a", "add servers c", "add servers d"}
		if diff := cmp.Diff(want, serverSteps(Diff(desired, actual, owner))); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
	})
}

// serverSteps are the steps on servers, with those.
func serverSteps(plan model.Plan) []string {
	var steps []string
	for i := range plan.Steps {
		text := string(plan.Steps[i].Op)
		for k := range plan.Steps[i].Servers {
			text += " " + plan.Steps[i].Servers[k].ID
		}
		steps = append(steps, text)
	}
	return steps
}

// TestBlockedPortKeepsNoGroups: while nobody knows the settings of one listener, it moves to its group all the same, and groups of former
// ports go.
func TestBlockedPortKeepsNoGroups(t *testing.T) {
	t.Parallel()
	blocked := listener("", 443, owner.NLBMark("443", "TCP"), "", owner.NLBGroupName("30443", "TCP"))
	blocked.Blocked = "InvalidAnnotation"
	actual := &model.Model{
		LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080"), group("sgp-2", "30081"), group("sgp-3", "31443")},
		Listeners: []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", ""),
			listener("lsn-2", 443, owner.NLBMark("443", "TCP"), "sgp-3", "")},
	}
	desired := &model.Model{
		Groups:    []model.Group{group("", "30080"), group("", "30443")},
		Listeners: []model.Listener{listener("", 80, owner.NLBMark("80", "TCP"), "", owner.NLBGroupName("30080", "TCP")), blocked},
	}
	for name, test := range map[string]struct {
		known bool
		want  bool
	}{"its group is known": {true, true}, "its group is not known": {false, false}} {
		if !test.known {
			desired.Groups = desired.Groups[:1]
		}
		plan := Diff(desired, actual, owner)
		var deleted []string
		for i := range plan.Steps {
			if plan.Steps[i].Op == model.OpDeleteGroup {
				deleted = append(deleted, plan.Steps[i].Group.ID)
			}
		}
		if want := map[bool][]string{true: {"sgp-2", "sgp-3"}}[test.want]; !cmp.Equal(deleted, want) {
			t.Errorf("%s: groups %v are deleted, want %v", name, deleted, want)
		}
		desired.Groups = []model.Group{group("", "30080"), group("", "30443")}
	}
}
