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
	return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: id, Type: alicloud.NLBServerECS, Port: 30080}, Weight: weight, Description: description}
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
		Groups:       []model.Group{group("sgp-1", "30080", server("i-1", 100, mine), server("i-2", 100, mine), server("i-3", 100, "a human's")), group("sgp-2", "30081")},
		Listeners:    []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", ""), listener("lsn-2", 81, owner.NLBMark("81", "TCP"), "sgp-2", ""), listener("lsn-3", 99, "by hand", "sgp-9", "")},
	}
	desired := &model.Model{
		Groups:    []model.Group{group("", "30080", server("i-2", 100, mine), server("i-4", 100, mine)), group("", "30082")},
		Listeners: []model.Listener{listener("", 80, owner.NLBMark("80", "TCP"), "", mine), listener("", 82, owner.NLBMark("82", "TCP"), "", owner.NLBGroupName("30082", "TCP"))},
	}
	want := []string{
		"add servers group:" + mine, "create server group group:" + owner.NLBGroupName("30082", "TCP"), "create listener tcp:82", "delete listener tcp:81",
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
		LoadBalancer: alicloud.NLB{ID: "nlb-1"}, Groups: []model.Group{group("sgp-1", "30080", server("i-1", 100, mine), server("i-2", 100, mine))},
		Listeners: []model.Listener{listener("lsn-1", 80, owner.NLBMark("80", "TCP"), "sgp-1", "")},
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
