package slb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// TestWritesSayWhy: the line in the log of each write names the Service and the reason.
func TestWritesSayWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		var lines []string
		logger := funcr.New(func(_, args string) {
			if strings.Contains(args, "Wrote to the cloud") {
				lines = append(lines, args)
			}
		}, funcr.Options{})
		pass := func(action, why string) {
			t.Helper()
			lines = nil
			if _, err := w.Reconcile(klog.NewContext(t.Context(), logger.WithValues("service", "default/web")), w.get("web")); err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if !strings.Contains(line, `"why"="`+why+`"`) || !strings.Contains(line, `"service"="default/web"`) {
					t.Errorf("%s: line %s, want one that says %q", action, line, why)
				}
			}
			if !strings.Contains(strings.Join(lines, "\n"), `"action"="`+action+`"`) {
				t.Errorf("no line about %s:\n%s", action, strings.Join(lines, "\n"))
			}
		}
		w.put(testService("web", 80))
		pass("CreateLoadBalancer", "new Service")
		w.deleteNode("c")
		pass("RemoveVServerGroupBackendServers", "endpoints or nodes")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 81 })
		pass("CreateLoadBalancerTCPListener", "edit of the Service")
		w.deleteListener(w.onlyCLB(), 81)
		time.Sleep(time.Hour) // a drift period has passed
		pass("CreateLoadBalancerTCPListener", "drift")
		w.deleteListener(w.onlyCLB(), 81)
		w.restart()
		pass("CreateLoadBalancerTCPListener", "start of the manager")
		w.change("web", deleteService)
		pass("DeleteLoadBalancer", "deletion")
	})
}
