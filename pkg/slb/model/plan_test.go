package model

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestBalancing: only a step that takes out nothing but backend servers that work can wait, wherever in the plan it stands.
func TestBalancing(t *testing.T) {
	t.Parallel()
	serves := func(instanceID string) bool { return instanceID != "i-dead" }
	old := func(ids ...string) []alicloud.Backend {
		var backends []alicloud.Backend
		for _, id := range ids {
			backends = append(backends, alicloud.Backend{BackendKey: alicloud.BackendKey{ServerID: id}})
		}
		return backends
	}
	for name, test := range map[string]struct {
		old  []alicloud.Backend
		want bool
	}{
		"takes out nothing":        {nil, false},
		"takes out one that works": {old("i-a"), true},
		"takes out a dead one":     {old("i-dead"), false},
		"takes out both":           {old("i-a", "i-dead"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := Plan{Steps: []Step{{Meanwhile: []Step{{Old: test.old}}}, {Old: test.old}}}.Balancing(serves)
			if got := plan.Steps[1].Balances; got != test.want {
				t.Errorf("a step balances: %t, want %t", got, test.want)
			}
			if got := plan.Steps[0].Meanwhile[0].Balances; got != test.want {
				t.Errorf("a step within another one balances: %t, want %t", got, test.want)
			}
		})
	}
}
