package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestLeavingServerIsWaitedFor: a node comes back while the cloud still drains its connections. It is added once it is gone, and others are
// added at once: in one call with it, the cloud would refuse them all.
func TestLeavingServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	const drain = 90 * time.Second
	for name, between := range map[string]func(*world){"": func(*world) {}, "restart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.account.Change(func(s *emulator.Settings) { s.Flipped = []string{"nlb.removing-ends-with-job"} })
				w.serve(2, testkube.TCP(80), with(annotation.ConnectionDrain, "on"), with(annotation.ConnectionDrainTimeout, "90"))
				w.deleteNode("n2")
				w.converge("web")
				since := time.Now()
				between(w)
				w.calls()
				w.addNodes("n2", "n3")
				w.passes("web", 20*time.Second)
				group := w.groups("web")[0].ID
				if got := w.servers(group); !slices.Contains(got, "i-n3:30080=100") {
					t.Errorf("servers %v after %s, want the new one among them", got, time.Since(since))
				}
				w.passes("web", 2*drain)
				if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100"}; !slices.Equal(got,
					want) {
					t.Errorf("listeners %v, want %v", got, want)
				}
				calls := w.calls()
				refused := slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.Contains(call, "DuplicatedParam") })
				if len(refused) > 1 || name != "" && len(refused) > 0 {
					t.Errorf("refused calls %v", refused)
				}
				if reads := len(calls) - len(writes(calls)); reads > 60 {
					t.Errorf("%d reads while the connections are drained", reads)
				}
				w.quiet("web")
			})
		})
	}
}

// TestFailedJobOfTheProcessBefore: the process ends right after it began a job, and the job fails. The next process sees something that is
// being added or changed, which is no proof that it will be there.
func TestFailedJobOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		if !slices.Contains([]string{"create", "nodes", "weights", "port", "ranges", "protocol"}, op.name) {
			continue
		}
		for i, action := range op.writes(t) {
			if slices.Contains(noJob, action) || action == "CreateLoadBalancer" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d %s", op.name, i, action), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					op.prepare(w)
					w.account.Fault(fmt.Sprintf(`{"action":"*","kind":"write","after":%d,"times":1,"job":"failed"}`, i))
					w.transport.diesAfter(i + 1)
					op.act(w)
					_ = w.try("web") //nolint:errcheck // it is killed
					w.restart()
					w.converge("web")
					if op.check != nil {
						op.check(t, w)
					}
					w.quiet("web")
				}, op.cloud...)
			})
		}
	}
}

// TestFailedJoinOfTheProcessBefore: the same for a security group that the load balancer was to join.
func TestFailedJoinOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		w.account.Fault(`{"action":"LoadBalancerJoinSecurityGroup","times":1,"job":"failed"}`)
		w.transport.diesAfter(4) // group, two calls for its rules, and the job
		w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
		_ = w.try("web") //nolint:errcheck // it is killed
		w.restart()
		w.converge("web")
		if got := w.balancer("web").SecurityGroups; len(got) != 1 {
			t.Errorf("security groups %v", got)
		}
		w.quiet("web")
	})
}
