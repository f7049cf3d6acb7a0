package slb

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// backendCalls returns the calls on backend servers since the last time, each as "Action backend servers" or "Action backend servers=Code".
func (w *world) backendCalls() []string {
	w.t.Helper()
	var found []string
	for _, call := range w.emulator.NewCalls() {
		for _, parameter := range []string{"BackendServers", "NewBackendServers"} {
			var servers []any
			if text := call.Parameters[parameter]; text == "" || json.Unmarshal([]byte(text), &servers) != nil {
				continue
			}
			line := fmt.Sprintf("%s %d", call.Action, len(servers))
			if call.Code != "" {
				line += "=" + call.Code
			}
			found = append(found, line)
		}
	}
	return found
}

func nodeNames(from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("n%02d", i))
	}
	return names
}

// TestBackendsGoInParts: a call takes 40 backend servers where the cloud does, and 20 for good once it refuses more. Either way the
// backend servers come, change, are swapped and leave, and nothing is written after that.
func TestBackendsGoInParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                       string
		limit                      int
		create, set, swap, removed []string
		late, grown                []string
	}{
		{
			"40 a call", 40,
			[]string{"CreateVServerGroup 40", "AddVServerGroupBackendServers 5"},
			[]string{"SetVServerGroupAttribute 40", "SetVServerGroupAttribute 5"},
			[]string{"ModifyVServerGroupBackendServers 40", "ModifyVServerGroupBackendServers 4"},
			[]string{"RemoveVServerGroupBackendServers 40", "RemoveVServerGroupBackendServers 4"},
			[]string{"CreateVServerGroup 40", "AddVServerGroupBackendServers 5"},
			[]string{"AddVServerGroupBackendServers 40", "AddVServerGroupBackendServers 4"},
		},
		{
			"20 a call", 20,
			[]string{"CreateVServerGroup 40=TooManyBackendServers", "CreateVServerGroup 20", "AddVServerGroupBackendServers 20",
				"AddVServerGroupBackendServers 5"},
			[]string{"SetVServerGroupAttribute 20", "SetVServerGroupAttribute 20", "SetVServerGroupAttribute 5"},
			[]string{"ModifyVServerGroupBackendServers 20", "ModifyVServerGroupBackendServers 20", "ModifyVServerGroupBackendServers 4"},
			[]string{"RemoveVServerGroupBackendServers 20", "RemoveVServerGroupBackendServers 20", "RemoveVServerGroupBackendServers 4"},
			[]string{"CreateVServerGroup 20", "AddVServerGroupBackendServers 20", "AddVServerGroupBackendServers 5"},
			[]string{"AddVServerGroupBackendServers 20", "AddVServerGroupBackendServers 20", "AddVServerGroupBackendServers 4"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, cloud.Limits{BackendsPerCall: test.limit})
			check := func(what string, want []string) {
				t.Helper()
				w.mustPass("web")
				if diff := cmp.Diff(want, w.backendCalls()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			for _, name := range nodeNames(0, 45) {
				w.addNode(name)
			}
			w.put(testService("web", 80))
			check("create", test.create)
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.DefaultWeight, "7") })
			check("change", test.set)
			for _, name := range nodeNames(1, 45) {
				w.deleteNode(name)
				w.addNode("m" + name)
			}
			check("swap", test.swap)
			for _, name := range nodeNames(1, 45) {
				w.deleteNode("m" + name)
			}
			check("removal", test.removed)
			for _, name := range nodeNames(1, 45) {
				w.addNode("l" + name)
			}
			w.put(testService("late", 81))
			w.mustPass("late")
			if diff := cmp.Diff(test.late, w.backendCalls()); diff != "" {
				t.Errorf("another Service (-want +got):\n%s", diff)
			}
			check("backend servers of the first", test.grown)
			w.drift("web")
			check("nothing", nil)
		})
	}
}
