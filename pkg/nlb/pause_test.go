package nlb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestPausedService: nothing of a paused Service is written to the cloud, and its condition says what would be.
func TestPausedService(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		id := w.balancer("web").ID
		w.change("web", testkube.Annotation(driver.AnnotationPaused, "true"), testkube.TCP(80, 81))
		w.calls()
		w.converge("web")
		if writes := writes(w.calls()); len(writes) > 0 {
			t.Errorf("writes %v", writes)
		}
		condition := meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionSynced)
		if condition == nil || condition.Reason != "Paused" || !strings.Contains(condition.Message, "tcp:81") {
			t.Errorf("condition %+v, want one that names tcp:81", condition)
		}
		w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, driver.AnnotationPaused) })
		w.converge("web")
		if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100", "TCP:81 i-n1:30081=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
	})
}
