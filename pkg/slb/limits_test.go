package slb

import (
	"context"
	"fmt"
	"strings"
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
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// Sizes of the fleet under published limits.
const (
	fleetServices = 500
	fleetPorts    = 2
	fleetGroups   = fleetServices * fleetPorts
	// groupQuota is how many calls of each action on groups the published limits let through in a minute.
	groupQuota = 90
)

// fleet is a controller with many Services over a cloud with published limits, in the time of a synctest bubble.
type fleet struct {
	*world
	controller *service.Controller
	cancel     context.CancelFunc
	done       chan struct{}
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetIn(t, cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000}, config.Config{Quotas: roomy()})
}

// newFleetIn makes a fleet in a cloud with quotas, whose manager has settings.
func newFleetIn(t *testing.T, quotas cloud.Limits, settings config.Config) *fleet {
	t.Helper()
	settings.ClusterID = testCluster
	return newFleetOn(t, publishedCloud(t, quotas), settings)
}

// publishedCloud is an account with quotas, whose rate limits are those that are published.
func publishedCloud(t *testing.T, quotas cloud.Limits) *emulatortest.Cloud {
	t.Helper()
	cfg := cloud.DefaultConfig()
	cfg.Quotas = quotas
	return emulatortest.New(t, emulator.Options{Config: cfg, RateLimits: emulator.RateLimitsPublished})
}

// newFleetOn makes a fleet on an account, whose manager has settings.
func newFleetOn(t *testing.T, e *emulatortest.Cloud, settings config.Config) *fleet {
	t.Helper()
	settings.VPCID, settings.VSwitchIDs = "vpc-emulator", []string{"vsw-a"}
	w := &world{
		t: t, emulator: e, kube: testkube.NewClientset(), api: processClient(t, e), transport: &mortal{},
		config: settings,
	}
	f := &fleet{world: w}
	f.start()
	return f
}

// start starts a controller that remembers nothing.
func (f *fleet) start() {
	f.t.Helper()
	w := f.world
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	opts := w.options()
	opts.Recorder = &record.FakeRecorder{} // nobody reads that many events
	opts.ResyncPeriod = 24 * time.Hour     // drift is another test's
	w.Reconciler = service.NewReconciler(opts)
	controller, err := service.NewController(opts, w.Reconciler)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	f.controller, f.cancel, f.done = controller, cancel, done
	w.factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
}

func (f *fleet) stop() {
	f.cancel()
	<-f.done
	f.factory.Shutdown()
}

// replaceProcess has another process go on, which knows nothing of the one before it.
func (f *fleet) replaceProcess() {
	f.t.Helper()
	f.stop()
	f.api = processClient(f.t, f.emulator)
	f.start()
}

// rest lets time pass until no write has arrived for more than a window of the limits.
func (f *fleet) rest() {
	teststorm.Rest(f.emulator)
}

// writes returns the writes of some actions that were not read yet, and fails on any that the cloud throttled.
func (f *fleet) writes(actions ...string) []emulator.Call {
	f.t.Helper()
	var found []emulator.Call
	for _, call := range f.emulator.Unread() {
		if strings.HasPrefix(call.Code, "Throttling") {
			f.t.Fatalf("%s was throttled at %s", call.Action, call.Time)
		}
		for _, action := range actions {
			if call.Action == action {
				found = append(found, call)
			}
		}
	}
	return found
}

func (f *fleet) createFleetNode(name string, change ...func(*corev1.Node)) {
	f.t.Helper()
	if _, err := f.emulator.PutInstance("i-"+name, emulator.InstanceSpec{}); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.kube.CoreV1().Nodes().Create(f.t.Context(), testNode(name, change...), metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// forced is how long the cloud's fixed one-minute windows make n calls of one action take at least.
func forced(begin time.Time, n int) time.Duration {
	window := begin.Truncate(time.Minute)
	for range (n - 1) / groupQuota {
		window = window.Add(time.Minute)
	}
	return max(0, window.Sub(begin))
}

// TestFleetUnderPublishedLimits: with 500 Services, a node that joins reaches all their groups in hardly more time than the
// limits themselves take; a node that dies meanwhile leaves every group before that group gets anything else; none waits
// for ever; and the cloud never has to throttle. Time is the bubble's, so that the machine's speed does not matter.
func TestFleetUnderPublishedLimits(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for _, name := range []string{"a", "b", "c"} {
			f.createFleetNode(name)
		}
		for i := range fleetServices {
			f.put(testService(fmt.Sprintf("s%03d", i), 80, 81))
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
		f.rest()
		if made := len(f.writes("StartLoadBalancerListener")); made != fleetGroups {
			t.Fatalf("%d listeners started, want %d", made, fleetGroups)
		}

		const add, remove, replace = "AddVServerGroupBackendServers", "RemoveVServerGroupBackendServers", "ModifyVServerGroupBackendServers"
		f.calls()
		began := time.Now()
		f.createFleetNode("d")
		f.rest()
		f.within("a node joins", began, f.writes(add), fleetGroups)

		f.calls()
		f.createFleetNode("e")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if working := f.controller.Working(); working != 0 {
			t.Errorf("%d passes count as at work while all wait for the limits", working)
		}
		died := time.Now()
		if err := f.kube.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.rest()
		out := append(f.writes(remove), f.writes(replace)...)
		f.removedFirst(died, f.writes(add, remove, replace))
		f.within("a node dies: swapped", died, f.writes(replace), len(f.writes(replace)))
		f.within("a node dies: removed", died, f.writes(remove), len(f.writes(remove)))
		if len(out) != fleetGroups {
			t.Errorf("%d groups lost the dead node, want %d", len(out), fleetGroups)
		}
		if came := len(f.writes(add, replace)); came != fleetGroups {
			t.Errorf("%d groups got the new node, want %d", came, fleetGroups)
		}
	})
}

// within checks that n calls took at most 1.1 times what the limits force.
func (f *fleet) within(what string, began time.Time, calls []emulator.Call, n int) {
	f.t.Helper()
	if len(calls) != n || n == 0 {
		f.t.Errorf("%s: %d calls, want %d", what, len(calls), n)
		return
	}
	took, least := calls[n-1].Time.Sub(began), forced(began, n)
	f.t.Logf("%s: %d calls in %s; the limits alone take %s", what, n, took.Round(time.Second), least.Round(time.Second))
	if float64(took) > 1.1*float64(least) && took > 5*time.Second {
		f.t.Errorf("%s: %d calls took %s, more than 1.1 times the %s that the limits take", what, n, took, least)
	}
}

// removedFirst checks that no group gets a backend server while it still has the dead one.
func (f *fleet) removedFirst(died time.Time, calls []emulator.Call) {
	f.t.Helper()
	clean := map[string]bool{}
	for _, call := range calls {
		group := call.Parameters["VServerGroupId"]
		switch {
		case call.Time.Before(died.Add(time.Second)): // on its way already
		case call.Action != "AddVServerGroupBackendServers":
			clean[group] = true
		case !clean[group]:
			f.t.Fatalf("group %s got a backend server at %s before it lost the dead one", group, call.Time)
		}
	}
}
