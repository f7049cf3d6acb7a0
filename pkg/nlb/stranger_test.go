package nlb

import (
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// untagOwner removes the owner tag of an NLB.
func untagOwner(w *world, id string) {
	w.t.Helper()
	testkit.Check(w.t, w.account.Client.UntagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []string{mark.TagOwner}))
}

// checkStranger checks that a deletion has left an NLB alone on which nothing but a copy of the owner tag is the Service's, and says that
// another one stays.
func checkStranger(t *testing.T, w *world, stranger, stays string) {
	t.Helper()
	if !w.exists(stranger) {
		t.Errorf("NLB %s is gone, which the Service never used", stranger)
	}
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonLoadBalancerKept) ||
		!strings.Contains(events, stays) {
		t.Errorf("events %q, want %s for %s", events, problem.ReasonLoadBalancerKept, stays)
	}
}

// TestDeletionLeavesAStranger: the NLB that the label names has lost its owner tag and its name, and another NLB, on which nothing is the
// Service's, has a copy of the tag. The deletion leaves the other one alone, and says that the first stays.
func TestDeletionLeavesAStranger(t *testing.T) {
	t.Parallel()
	takenOver := func(w *world, id string) {
		w.t.Helper()
		untagOwner(w, id)
		w.rename(id, newService("theirs"))
	}
	deletedBesideTwin(t, takenOver, func(t *testing.T, w *world, id, stranger string) {
		t.Helper()
		checkStranger(t, w, stranger, id)
	})
}

// TestDeletionFindsWhatTheSearchLacks: the NLB that the label names has its owner tag, and only the search by tag lacks it, while it finds
// another one. The deletion removes the first, and says that the other one stays.
func TestDeletionFindsWhatTheSearchLacks(t *testing.T) {
	t.Parallel()
	lacks := func(w *world, id string) {
		w.t.Helper()
		owner := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(w.get("web").UID)}
		untagOwner(w, id)
		time.Sleep(time.Minute)
		testkit.Check(w.t, w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []alicloud.Tag{owner}))
		w.account.Fault(`{"product":"nlb","action":"ListLoadBalancers","tagSearchLag":"30s","times":0}`)
	}
	deletedBesideTwin(t, lacks, func(t *testing.T, w *world, id, stranger string) {
		t.Helper()
		checkStranger(t, w, stranger, stranger)
		if w.exists(id) || len(w.get("web").Finalizers) > 0 {
			t.Errorf("NLB %s exists: %v, finalizers %v", id, w.exists(id), w.get("web").Finalizers)
		}
	})
}
