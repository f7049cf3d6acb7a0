package bench

import (
	"bytes"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

func TestResidentKiB(t *testing.T) {
	t.Parallel()
	got, err := memoryKiB([]byte("Name:\tVmRSS\nVmHWM:\t  9999 kB\nVmRSS:\t  2048 kB\nThreads:\t3\n"), "VmRSS")
	if err != nil || got != 2048 {
		t.Errorf("memoryKiB = %v, %v", got, err)
	}
	for _, bad := range []string{"", "VmHWM:\t1 kB\n", "VmRSS:\n", "VmRSS:\tmuch kB\n"} {
		if _, err := memoryKiB([]byte(bad), "VmRSS"); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSpentTime(t *testing.T) {
	t.Parallel()
	stat := "42 (a ) name) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14"
	got, err := spentTime([]byte(stat))
	if err != nil || got != 2*time.Second {
		t.Errorf("spentTime = %v, %v", got, err)
	}
	for _, bad := range []string{"", "42 (name) S 1 2", "42 name S 1 2 3 4 5 6 7 8 9 10 150 50", strings.Replace(stat, "150", "x", 1)} {
		if _, err := spentTime([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestOwnProcessIsMeasured(t *testing.T) {
	t.Parallel()
	mib, err := residentMiB(os.Getpid())
	if err != nil || mib < 1 {
		t.Errorf("resident memory of the test: %v MiB, %v", mib, err)
	}
	if _, err := processorTime(os.Getpid()); err != nil {
		t.Error(err)
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
