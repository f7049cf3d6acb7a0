package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestWriteThatOutlivesItsProcess: the next process starts while the cloud is still at work on the creation of a group, and makes
// one of its own. It reads the CLB again seconds after its plan, and the group that nobody uses is gone with that pass.
func TestWriteThatOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := processCloud(t)
		w := &world{t: t, emulator: e, kube: testkube.NewClientset(), transport: &mortal{},
			config: config.Config{ClusterID: testCluster, VPCID: "vpc-emulator", VSwitchIDs: []string{"vsw-a"}}}
		w.factory = informers.NewSharedInformerFactory(w.kube, 0)
		w.events = make(chan string, 100)
		threeNodes(w)
		w.put(testService("web", 80))
		w.fault(map[string]any{"action": "CreateVServerGroup", "latency": "5s"})

		last := &mortal{limit: 2, next: e.Transport()} // the creations of the CLB and of the group
		client, err := alicloud.New(alicloud.Options{
			Region: testRegion, Credentials: testKey(), Transport: last,
			Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "cloud", VPC: "cloud", ECS: "cloud"},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.api = client
		dying := service.NewReconciler(w.options())
		var appeared, deleted time.Time
		died := make(chan struct{})
		go func() {
			defer close(died)
			_, _ = dying.Reconcile(t.Context(), w.get("web")) // its end is not seen by anybody
			appeared = time.Now()
		}()
		time.Sleep(time.Second)

		w.api = processClient(t, e)
		w.Reconciler = service.NewReconciler(w.options())
		for begun := time.Now(); time.Since(begun) < 2*testLongestCall; {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(w.calls(), "DeleteVServerGroup") {
				deleted = time.Now()
			}
			time.Sleep(min(wait, time.Minute))
		}
		<-died
		stood := deleted.Sub(appeared)
		if groups := w.state()["a0f5e8a1cweb"].Groups; len(groups) != 1 || stood < 0 || stood > 5*time.Second {
			t.Errorf("the second group is gone after %s, and %v are left, want 1 after seconds", stood, groups)
		}
		w.calls()
		wait, err := w.Reconcile(t.Context(), w.get("web"))
		if calls := w.calls(); err != nil || len(calls) != 0 || wait < testResyncPeriod/2 {
			t.Errorf("calls %v, the next pass in %s, %v; want rest", calls, wait, err)
		}
	})
}
