package bench

import (
	"bytes"
	"maps"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

func TestOwnProcessIsMeasured(t *testing.T) {
	t.Parallel()
	self, err := usedBy(os.Getpid())
	if err != nil || self.resident < 1 || self.resident > self.highest {
		t.Errorf("%+v, %v", self, err)
	}
}

func TestReplayedCallsAreAnotherServices(t *testing.T) {
	t.Parallel()
	service := func(name, uid string, port int32) *corev1.Service {
		s := newService(name, 1)
		s.UID, s.Spec.Ports[0].NodePort = types.UID(uid), port
		return s
	}
	recorded := []emulator.Call{
		{Product: productCLB, Action: "CreateVServerGroup", Kind: "write", Code: "Throttling.User"},
		{Product: productCLB, Action: "CreateVServerGroup", Kind: "write", Parameters: api.Params{
			"LoadBalancerId": "lb-old", "VServerGroupName": "k8s/30001/template/default/id", "Tag": "a11111111222233334444555555555555"[:32],
			"ClientToken": "token", "Signature": "x", "BackendServers": `[{"Port":30001}]`,
		}},
	}
	old := &template{
		service: service("template", "11111111-2222-3333-4444-555555555555", 30001), calls: unsigned(recorded),
		groups: map[string]string{"k8s/30001/template/default/id": "rsp-old"},
	}
	names := old.names(service("many-7", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", 30777))
	names["lb-old"] = "lb-new"
	if len(old.calls) != 1 {
		t.Fatalf("%d calls are repeated, want the one that succeeded", len(old.calls))
	}
	before := maps.Clone(old.calls[0])
	want := api.Params{
		"Action": "CreateVServerGroup", "Version": api.VersionSLB, "LoadBalancerId": "lb-new", "VServerGroupName": "k8s/30777/many-7/default/id",
		"Tag": "aaaaaaaaabbbbccccddddeeeeeeeeeee", "BackendServers": `[{"Port":30777}]`,
	}
	if diff := cmp.Diff(want, renamed(old.calls[0], names)); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, old.calls[0]); diff != "" {
		t.Errorf("the template was changed (-want +got):\n%s", diff)
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Options{Only: "lunch", Progress: &bytes.Buffer{}}); err == nil {
		t.Error("an unknown group is accepted")
	}
	if _, err := RunScenario(t.Context(), Options{}, "lunch"); err == nil {
		t.Error("an unknown scenario is accepted")
	}
	if diff := cmp.Diff([]string{"initor", "clb", "nlb", "routes", "nodes", "scale"}, Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
