package provider

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// TestEventsAreLogged: the log has every event at the default verbosity, because the API server forgets them after an hour.
func TestEventsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		logger := funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, args)
		}, funcr.Options{})
		broadcaster := newBroadcaster(klog.NewContext(t.Context(), logger), fake.NewClientset())
		defer broadcaster.Shutdown()
		recorderOf(broadcaster)(serviceEvents).Event(testkube.Service("web", testkube.TCP(80)), corev1.EventTypeWarning, "SyncLoadBalancerFailed",
			"no quota")
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if text := strings.Join(lines, "\n"); !strings.Contains(text, "SyncLoadBalancerFailed") || !strings.Contains(text, "no quota") ||
			!strings.Contains(text, `"name"="web"`) && !strings.Contains(text, `"web"`) {
			t.Errorf("log = %s, want a line with the event", text)
		}
	})
}
