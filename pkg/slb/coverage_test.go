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
	covered := sets.New[string]()
	for row, op := range operations() {
		w := newWorld(t)
		op.prepare(w)
		w.calls()
		op.act(w)
		w.converge("web")
		writes := writesOf(w.calls())
		for i := range mishaps() {
			for _, k := range testkit.SampleWrites(samplingFactor, row, i, len(writes)) {
				covered.Insert(writes[k])
			}
		}
	}
	if diff := cmp.Diff(sets.List(clientWrites()), sets.List(covered)); diff != "" {
		t.Errorf("actions (-of the client +covered by operations):\n%s", diff)
	}
}
