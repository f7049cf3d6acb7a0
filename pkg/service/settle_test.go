package service

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestNobodyWaitsForEver: the Services wait for one that never chooses until a pass over it has ended, for a minute, and for 10 minutes at
// most.
func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		passed bool
		want   time.Duration
	}{
		"passes end":     {true, waits.OthersSettle},
		"no pass begins": {false, waits.OthersSettleAtLast},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd()
				if !c.settled() {
					t.Error("the Services wait, and there are none")
				}
				c.absent = map[types.UID]absence{"broken": {since: time.Now(), passed: test.passed}}
				time.Sleep(test.want - time.Second)
				if c.settled() {
					t.Errorf("nobody waits before %s", test.want)
				}
				time.Sleep(time.Second)
				if !c.settled() {
					t.Errorf("the Services still wait after %s", test.want)
				}
			})
		})
	}
}

// TestAnotherServiceIsNoneThatIsKnown: what a Service has that is in deletion says nothing about another one that nobody knows yet,
// although there are as many.
func TestAnotherServiceIsNoneThatIsKnown(t *testing.T) {
	t.Parallel()
	informer := informers.NewSharedInformerFactory(testkit.NewClientset(), 0).Core().V1().Services()
	engine := &sharingProduct{newProduct("known"), "listeners"}
	r := &Reconciler{opts: Options{Engines: []Engine{engine}, Services: informer, Config: config.Config{}}}
	for _, uid := range []types.UID{"known", "new"} {
		testkit.Check(t, informer.Informer().GetIndexer().Add(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: string(uid), UID: uid},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		}))
	}
	c := newCrowd()
	c.hold("known", stake{})
	c.hold("in deletion", stake{})
	r.recount(c, engine, 1)
	if len(c.counted.services) != 2 || c.settled() {
		t.Errorf("%d Services, of which all are known: %v", len(c.counted.services), c.settled())
	}
	since := c.absent["new"].since
	if r.recount(c, engine, 2); c.absent["new"].since != since {
		t.Error("the time begins anew with each change of a Service")
	}
	if c.hold("new", stake{}); !c.settled() {
		t.Error("all are known, and they wait")
	}
}
