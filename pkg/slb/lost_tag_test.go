package slb

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestLostOwnerTag: somebody, or a rule, has removed the tags of a CLB that the manager made. Drift detection puts them back, and without
// that the CLB goes with its Service all the same: nobody else would, and it is billed.
func TestLostOwnerTag(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(w *world){
		"drift": func(w *world) {
			w.drift("web")
			w.mustPass("web")
			lb := w.lb(w.onlyCLB())
			if _, tagged := lb.Tag(mark.TagOwner); !tagged {
				w.t.Errorf("tags %v, want those of the owner", lb.Tags)
			}
		},
		"deletion":                 func(*world) {},
		"deletion after a restart": (*world).restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			if err := w.api.UntagLoadBalancer(t.Context(), w.onlyCLB(), []string{mark.TagOwner, mark.TagCluster}); err != nil {
				t.Fatal(err)
			}
			between(w)
			w.change("web", deleteService)
			w.passes("web", 5)
			if state := w.state(); len(state) != 0 || len(w.get("web").Finalizers) > 0 {
				t.Errorf("left: %v, finalizers %v", state, w.get("web").Finalizers)
			}
		})
	}
}
