package bench

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

var stormBegan = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// changeOf is a call that changes the group g, seconds after the storm began. Texts are names of parameters and their values.
func changeOf(seconds int, action, code string, texts ...string) emulator.Call {
	params := api.Params{"VServerGroupId": "g"}
	for i := 0; i < len(texts); i += 2 {
		params[texts[i]] = texts[i+1]
	}
	at := stormBegan.Add(time.Duration(seconds) * time.Second)
	return emulator.Call{Product: productCLB, Action: action, Kind: "write", Code: code, Parameters: params, Time: at}
}

func TestStormFollowsCalls(t *testing.T) {
	t.Parallel()
	s := newStorm(map[string][]string{"g": {"dead-1", "dead-2", "live"}, "h": {"dead-1", "live"}},
		map[string]bool{"dead-1": true, "dead-2": true})
	if s.left != 3 || len(s.empty) != 0 {
		t.Fatalf("%d dead members, %v are empty", s.left, s.empty)
	}
	const remove, replace, add = "RemoveVServerGroupBackendServers", "ModifyVServerGroupBackendServers", "AddVServerGroupBackendServers"
	for _, call := range []emulator.Call{
		changeOf(1, remove, "Throttling.User", "BackendServers", `[{"ServerId":"dead-1"}]`),
		changeOf(10, remove, "", "BackendServers", `[{"ServerId":"dead-1"},{"ServerId":"live"}]`),
		changeOf(20, replace, "", "OldBackendServers", `[{"ServerId":"dead-2"}]`, "NewBackendServers", `[{"ServerId":"new"}]`),
		changeOf(30, add, "", "BackendServers", `[{"ServerId":"live"},{"ServerId":"new"}]`),
		changeOf(40, remove, "", "BackendServers", `[{"ServerId":"new"}]`),
		changeOf(50, "SetVServerGroupAttribute", "", "BackendServers", `[{"ServerId":"live","Weight":7}]`),
	} {
		if err := s.follow(call); err != nil {
			t.Fatal(err)
		}
	}
	if s.left != 1 || s.removals[remove] != 1 || s.removals[replace] != 1 || s.live["g"] != 1 {
		t.Errorf("%d dead members, removals %v, %d live members", s.left, s.removals, s.live["g"])
	}
	if !s.empty["g"] || s.empty["h"] {
		t.Errorf("%v are empty, want the group without its live member for ten seconds", s.empty)
	}
	if got := quantile(s.after(stormBegan), 1); got != 20*time.Second {
		t.Errorf("the last one left after %s", got)
	}
	if err := s.follow(changeOf(60, add, "", "BackendServers", "much")); err == nil {
		t.Error("a call that cannot be read is accepted")
	}
}
