package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// clientWrites returns every action of the client that writes to load balancers.
func clientWrites() sets.Set[string] {
	found := sets.New[string]()
	for _, action := range alicloud.Actions() {
		if action.Product == "slb" && !action.IsRead() {
			found.Insert(action.Name)
		}
	}
	return found
}

// TestEveryWriteActionMayGoWrong: a new action that writes must be one of those that [TestEveryWriteMayGoWrong] makes fail, also where it
// tries a sample.
func TestEveryWriteActionMayGoWrong(t *testing.T) {
	t.Parallel()
	var writes [][]string
	for _, op := range operations() {
		_, actions := undisturbed(t, op)
		writes = append(writes, actions)
	}
	covered := sets.New[string]()
	for _, wrong := range testkit.SampleWrites(writes, len(mishaps())) {
		covered.Insert(writes[wrong.Operation][wrong.Write])
	}
	if diff := cmp.Diff(sets.List(clientWrites()), sets.List(covered)); diff != "" {
		t.Errorf("actions (-of the client +covered by operations):\n%s", diff)
	}
}
