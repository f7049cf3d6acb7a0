package slb

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// cacheServices puts the Services into the cache as the API server has them.
func (w *world) cacheServices(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.factory.Core().V1().Services().Informer().GetIndexer().Add(w.get(name)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestRestartReadsInPages(t *testing.T) {
	t.Parallel()
	const n = 15 // within the burst that the client's limiter grants the creation of CLBs
	w := newWorld(t)
	threeNodes(w)
	var names []string
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		names = append(names, name)
		w.put(testService(name, 80, 443))
		w.mustPass(name)
	}
	w.restart()
	w.calls()
	w.cacheServices(names...)
	if err := w.Preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w.mustPass(name)
	}
	got := map[string]int{}
	for _, action := range w.calls() {
		got[action]++
	}
	want := map[string]int{"DescribeLoadBalancers": 1, "DescribeLoadBalancerListeners": 2, "DescribeVServerGroupAttribute": 2 * n}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestPreloadFindsWhatACrashLeft: a group whose listener was never made is not made a second time.
func TestPreloadFindsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.transport.limit = 2 // the CLB and the group, then the process dies
	if err := w.pass("web"); err == nil {
		t.Fatal("the process did not die")
	}
	w.restart()
	w.cacheServices("web")
	if err := w.Preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.calls()
	w.mustPass("web")
	if diff := cmp.Diff([]string{"CreateLoadBalancer", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener"},
		writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestPreloadLeavesTwoCLBsOfOneServiceAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Finalizers = []string{Finalizer}
	w.officialCLB(svc, testCluster)
	w.officialCLB(svc, testCluster)
	w.put(svc)
	w.cacheServices("web")
	if err := w.Preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mustPassConfigError("web")
}

func TestPreloadIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.restart()
	w.cacheServices("web")
	if err := w.Preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "wlc") })
	w.mustPass("web")
	w.drift("web")
	w.calls()
	w.mustPass("web")
	if calls := w.calls(); len(writesOf(calls)) != 0 || len(calls) != 4 {
		t.Errorf("calls %v, want the four reads of a refresh", calls)
	}
}
