package slb

import (
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// priorities records with what priority each action was called.
type priorities struct {
	next http.RoundTripper

	mu       sync.Mutex // guards byAction
	byAction map[string]alicloud.Priority
}

func (p *priorities) RoundTrip(request *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.byAction[request.URL.Query().Get("Action")] = alicloud.WaitingOf(request.Context()).Priority
	p.mu.Unlock()
	return p.next.RoundTrip(request)
}

func (p *priorities) take() map[string]alicloud.Priority {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := maps.Clone(p.byAction)
	clear(p.byAction)
	return taken
}

// TestChangeAtDriftTimeIsNotDrift: what changed in the cluster keeps its priority although the same pass also repairs drift.
func TestChangeAtDriftTimeIsNotDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := processCloud(t)
		seen := &priorities{next: e.Transport(), byAction: map[string]alicloud.Priority{}}
		w := processWorld(t, e, seen)
		threeNodes(w)
		w.put(testService("web", 80))
		wait, err := w.Reconcile(t.Context(), w.get("web"))
		if err != nil {
			t.Fatal(err)
		}
		w.raw(api.VersionSLB, "StopLoadBalancerListener",
			map[string]string{"LoadBalancerId": w.onlyCLB(), "ListenerPort": "80", "ListenerProtocol": "tcp"}, nil)
		time.Sleep(wait)
		w.addNode("d")
		seen.take()
		w.mustPass("web")
		writes := seen.take()
		maps.DeleteFunc(writes, func(action string, _ alicloud.Priority) bool { return action[:8] == "Describe" })
		want := map[string]alicloud.Priority{"AddVServerGroupBackendServers": alicloud.PriorityBackend,
			"StartLoadBalancerListener": alicloud.PriorityDrift}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("priorities (-want +got):\n%s", diff)
		}
	})
}
