package nlb

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

const (
	// poolServices is how many Services use the nodes of each pool, poolNodes how many nodes join a pool at once.
	poolServices, poolNodes = 30, 10
	// addQuota is how many calls that add servers the published limits let through in a minute, usedBefore how many of them something else has
	// made.
	addQuota, usedBefore = 200, 150
	addServers           = "AddServersToServerGroup"
	removeServers        = "RemoveServersFromServerGroup"
)

// storm is a controller with Services on NLBs, in the time of a synctest bubble.
type storm struct {
	*world
	nodes int
	// resync is how old the state of a load balancer may grow before it is read again.
	resync time.Duration
	stop   func()
}

// newStorm makes a storm over a cloud with published rate limits.
func newStorm(t *testing.T) *storm {
	t.Helper()
	return newStormOn(t, emulator.Options{Config: cloud.DefaultConfig(), Settle: settle, RateLimits: emulator.RateLimitsPublished}, nil,
		24*time.Hour)
}

// newStormOn makes a storm over a cloud whose quotas the manager knows as the book has them, and whose state it reads again after so long.
func newStormOn(t *testing.T, options emulator.Options, quotas *quota.Book, resync time.Duration) *storm {
	t.Helper()
	s := &storm{resync: resync, world: &world{
		t: t, account: testcloud.New(t, options), kube: testkube.NewClientset(),
		config: config.Config{ClusterID: testCluster, VPCID: emulatortest.VPC, VSwitchIDs: []string{"vsw-a", "vsw-b"},
			Region: emulatortest.Region, Quotas: quotas},
	}}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a controller that remembers nothing.
func (s *storm) start() {
	s.t.Helper()
	s.factory = informers.NewSharedInformerFactory(s.kube, 0)
	s.engine = NewEngine(s.account.Client, s.config, s.factory.Core().V1().Services().Lister()).(*engine) //nolint:forcetypeassert // it is one
	opts := s.options(s.account.Client)
	opts.Recorder = &record.FakeRecorder{} // nobody reads that many events
	opts.ResyncPeriod = s.resync
	controller := testkit.Must(service.NewController(opts, service.NewReconciler(opts)))(s.t)
	ctx, cancel := context.WithCancel(s.t.Context())
	factory, done := s.factory, make(chan struct{})
	factory.Start(ctx.Done())
	go func() { controller.Run(ctx); close(done) }()
	s.stop = func() {
		cancel()
		<-done
		factory.Shutdown()
	}
}

// replaceProcess has another process go on, which knows nothing of the one before it.
func (s *storm) replaceProcess() {
	s.t.Helper()
	s.stop()
	s.account.Client = s.account.NewClient()
	s.start()
}

// writesNothing checks that another process has nothing to write.
func (s *storm) writesNothing() {
	s.t.Helper()
	s.account.NewCalls()
	s.replaceProcess()
	s.rest()
	for _, call := range s.account.NewCalls() {
		if !isRead(call.Action) {
			s.t.Errorf("another process writes: %s=%s %v", call.Action, call.Code, call.Parameters)
		}
	}
}

// joins has nodes of a pool join at once.
func (s *storm) joins(pool string, n int) {
	s.t.Helper()
	for range n {
		s.nodes++
		name := fmt.Sprintf("n%d", s.nodes)
		s.account.Put(testkube.InstanceOf(name), "{}")
		node := testkube.Node(name, func(n *corev1.Node) { n.Labels["pool"] = pool })
		testkit.Must(s.kube.CoreV1().Nodes().Create(s.t.Context(), node, metav1.CreateOptions{}))(s.t)
	}
}

// rest lets time pass until no write has arrived for more than a window of the limits.
func (s *storm) rest() {
	teststorm.Rest(s.account.Cloud)
}

// at waits until so long after the start of this minute.
func (s *storm) at(passed time.Duration) {
	now := time.Now()
	time.Sleep(now.Truncate(time.Minute).Add(passed).Sub(now))
}

// useUp makes calls that add no server. The quota counts them, too.
func (s *storm) useUp(calls int) {
	s.t.Helper()
	nothing := []alicloud.NLBServer{{NLBServerKey: alicloud.NLBServerKey{ID: "i-n1", Type: alicloud.NLBServerECS, Port: 80}, Weight: 100}}
	for range calls {
		if _, err := s.account.Client.AddNLBServers(s.t.Context(), "sgp-none", nothing); !alicloud.IsNotFound(err) {
			s.t.Fatalf("error %v, want that the group does not exist", err)
		}
	}
}

// TestServerGroupsTakeTurns: many nodes that join at once cost one write on each server group that gets them. While the quota is used up, a
// group that was written to waits for its next turn behind others, although it has waited longer, so that no group is written to twice in
// the window.
func TestServerGroupsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t)
		s.joins("a", 1)
		s.joins("b", 1)
		for _, pool := range []string{"a", "b"} {
			for i := range poolServices {
				s.put(newService(fmt.Sprintf("%s%02d", pool, i), testkube.TCP(80), with(annotation.BackendLabel, "pool="+pool)))
			}
		}
		s.rest()
		s.at(time.Minute)
		s.account.NewCalls()
		s.useUp(usedBefore)
		s.at(30 * time.Second)
		s.joins("a", poolNodes)
		s.at(47 * time.Second)
		s.joins("a", poolNodes)
		time.Sleep(time.Second)
		s.joins("b", poolNodes)
		s.rest()
		type writing struct {
			group  string
			window time.Time
		}
		writes, windows, total := map[writing]int{}, map[time.Time]int{}, 0
		for _, call := range s.account.NewCalls() {
			if call.Action != addServers {
				continue
			}
			window := call.Time.Truncate(time.Minute)
			windows[window]++
			if call.Code == "" {
				writes[writing{call.Parameters["ServerGroupId"], window}]++
				total++
			}
		}
		used := 0
		for one, n := range writes {
			if windows[one.window] >= addQuota {
				if used++; n > 1 {
					t.Errorf("server group %s: %d writes in a window whose quota is used up", one.group, n)
				}
			}
		}
		t.Logf("%d writes on %d groups, %d of them in a window whose quota is used up", total, 2*poolServices, used)
		if used != addQuota-usedBefore {
			t.Errorf("%d groups written to in the window, want %d", used, addQuota-usedBefore)
		}
		if most := 3 * poolServices; total > most {
			t.Errorf("%d writes for three events that concern %d groups each", total, poolServices)
		}
	})
}
