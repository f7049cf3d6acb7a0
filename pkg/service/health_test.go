package service

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

func TestHealthFailsWhenAPassDoesNotEnd(t *testing.T) {
	t.Parallel()
	h := newHealth()
	end := h.trackPass(types.NamespacedName{Name: "web"})
	if err := h.Check(nil); err != nil {
		t.Errorf("a pass that has just begun: %v", err)
	}
	h.started[types.NamespacedName{Name: "web"}] = time.Now().Add(-waits.PassOfService - time.Second)
	if h.Check(nil) == nil {
		t.Error("no error for a pass that does not end")
	}
	h.pausePass(types.NamespacedName{Name: "web"})
	if err := h.Check(nil); err != nil {
		t.Errorf("while it waits for the rate limit: %v", err)
	}
	h.resumePass(types.NamespacedName{Name: "web"})
	if err := h.Check(nil); err != nil {
		t.Errorf("when it has just gone on: %v", err)
	}
	end()
	if err := h.Check(nil); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
