package slb

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestATagThatIsRefusedHoldsNothing: an existing CLB serves without our tag, too; marks say what is the Service's.
func TestATagThatIsRefusedHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.fault(map[string]any{"action": "TagResources", "code": "Forbidden.RAM", "status": 403, "times": 0})
	w.put(reusing("web", lb.ID, "true", 80))
	if err := w.pass("web"); err == nil {
		t.Error("nobody hears of the refusal")
	}
	w.deleteNode("a")
	w.addNode("d")
	_ = w.pass("web") //nolint:errcheck // as before
	if got, want := w.state()["mine"].serving("tcp:80"), []string{"i-b 100", "i-c 100", "i-d 100"}; !slices.Equal(got, want) {
		t.Errorf("the listener leads to %v, want %v", got, want)
	}
	if shown := w.shown("web"); !slices.Equal(shown, []string{lb.Address}) {
		t.Errorf("the Service shows %v", shown)
	}
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	if on := w.state()["mine"]; len(on.Listeners)+len(on.Groups) != 0 {
		t.Errorf("after the Service: %v %v", on.Listeners, on.Groups)
	}
}

// TestNothingIsDeletedWithoutTheOwnerTag: where the tag that names the Service cannot be put back, the CLB stays.
func TestNothingIsDeletedWithoutTheOwnerTag(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.untagged(w.onlyCLB())
	w.fault(map[string]any{"action": "TagResources", "code": "Forbidden.RAM", "status": 403, "times": 0})
	w.restart()
	w.change("web", deleteService)
	for range 3 {
		_ = w.pass("web") //nolint:errcheck // it fails
	}
	if on, there := w.state()["a0f5e8a1cweb"]; !there || on.Tags[mark.TagOwner] != "" {
		t.Errorf("the CLB is there: %v, with %v", there, on.Tags)
	}
}
