package teststorm

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Published notes when the status of each Service shows an address for the first time. The caller reads it while nothing runs.
func Published(kube *fake.Clientset) map[string]time.Time {
	first := map[string]time.Time{}
	synctest.Wait() // reactors are added without a lock, and informers may be reading them
	kube.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if ok && strings.Contains(string(patch.GetPatch()), `"ingress"`) {
			if _, seen := first[patch.GetName()]; !seen {
				first[patch.GetName()] = time.Now()
			}
		}
		return false, nil, nil
	})
	return first
}

// AllPublished checks that so many Services show an address, the last one no later than 1.1 times the least that the limits take.
func AllPublished(tb testing.TB, first map[string]time.Time, began time.Time, want int, least time.Duration) {
	tb.Helper()
	last := began
	for _, at := range first {
		if at.After(last) {
			last = at
		}
	}
	took := last.Sub(began)
	tb.Logf("%d Services have addresses, the last one after %s; their creation takes %s, %.2f times", len(first), took, least,
		float64(took)/float64(least))
	if len(first) != want || float64(took) > late*float64(least) {
		tb.Errorf("%d Services of %d have addresses, the last one after %s; want 1.1 times %s at most", len(first), want, took, least)
	}
}
