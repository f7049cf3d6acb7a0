package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestPreservedIsFound: a CLB that stays because its Service asked for that takes up a quota. It is found with the flag, until a Service
// uses it.
func TestPreservedIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	annotate(svc, annotation.PreserveOnDelete, "true")
	w.put(svc)
	w.converge("web")
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	w.change("web", deleteService)
	w.mustPass("web")
	w.vanish("web")
	if diff := cmp.Diff(map[string]string{mark.TagPreserved: "c1/default/web"}, tagsOf(w.lb(id))); diff != "" {
		t.Errorf("tags of a CLB that stays (-want +got):\n%s", diff)
	}
	preserved := driver.OrphanQuery{Preserved: true}
	want := []string{"load balancer lb (a0f5e8a1cweb): Service default/web left it with the annotation " +
		ids.ReplaceAllString(annotation.PreserveOnDelete.Key(), "$1")}
	if diff := cmp.Diff(want, w.orphans(preserved)); diff != "" {
		t.Errorf("with the flag (-want +got):\n%s", diff)
	}
	if got := w.orphans(); got != nil {
		t.Errorf("without the flag: %q", got)
	}
	w.put(reusing("shop", id, "true", 81))
	w.converge("shop")
	if got := w.orphans(preserved); slices.ContainsFunc(got, func(line string) bool {
		return strings.HasPrefix(line, driver.OrphanLoadBalancer)
	}) {
		t.Errorf("although a Service uses it: %q", got)
	}
}

// TestPreservedOnExistingCLBIsNoOrphan: what a Service leaves on purpose on an existing CLB is found with the flag only, and no command
// deletes the CLB itself.
func TestPreservedOnExistingCLBIsNoOrphan(t *testing.T) {
	t.Parallel()
	const listener, group = "listener tcp:80 (k8s/80/web/default/c1) in lb: Service default/web does not exist", "vServer group rsp (k8s/30080/web/default/c1) in lb: Service default/web does not exist"
	for force, want := range map[string][]string{"true": {listener, group}, "false": {group}} {
		t.Run("force "+force, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			web := reusing("web", w.makeCLB().ID, force, 80)
			annotate(web, annotation.PreserveOnDelete, "true")
			w.put(web)
			w.converge("web")
			w.change("web", deleteService)
			w.mustPass("web")
			w.vanish("web")
			if found := w.orphans(); found != nil {
				t.Errorf("what was preserved is an orphan: %q", found)
			}
			if diff := cmp.Diff(want, w.orphans(driver.OrphanQuery{Preserved: true})); diff != "" {
				t.Errorf("with the flag (-want +got):\n%s", diff)
			}
		})
	}
}

func tagsOf(lb alicloud.LoadBalancer) map[string]string {
	tags := map[string]string{}
	for _, tag := range lb.Tags {
		tags[tag.Key] = tag.Value
	}
	return tags
}

// TestOrphansOfEarlierIDs: what is left counts whichever id the cluster had: one that is given, or one that a CLB of a Service which is
// there carries. That of another cluster does not.
func TestOrphansOfEarlierIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.officialCLB(testService("literal", 80), "clusterid")
	w.officialCLB(testService("before", 80), "c0")
	w.officialCLB(testService("theirs", 80), "c9")
	shared := w.makeCLB(alicloud.Tag{Key: mark.TagReused, Value: "true"})
	w.makeGroup(shared.ID, "old", "k8s/80/old/default/c0")
	if got := w.orphans(); got != nil {
		t.Errorf("with the id of today: %q", got)
	}
	literal := "load balancer lb (a0f5e8a1cliteral): no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cliteral"
	if diff := cmp.Diff([]string{literal}, w.orphans(driver.OrphanQuery{ClusterIDs: []string{"clusterid"}})); diff != "" {
		t.Errorf("with the literal id (-want +got):\n%s", diff)
	}
	there := testService("there", 81)
	w.officialCLB(there, "c0")
	there.Finalizers = []string{Finalizer}
	w.put(there)
	want := []string{
		"backend server i-far:80 weight 7 (k8s/80/old/default/c0) in rsp: Service default/old does not exist",
		"load balancer lb (a0f5e8a1cbefore): no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cbefore", literal,
	}
	if diff := cmp.Diff(want, w.orphans(driver.OrphanQuery{ClusterIDs: []string{"clusterid"}})); diff != "" {
		t.Errorf("with a Service whose CLB has the earlier id (-want +got):\n%s", diff)
	}
}

// TestOrphansAreDeleted: the commands that the report prints delete what it found, in the order of the report of the program.
func TestOrphansAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	everyKindOfOwner(w)
	for _, name := range []string{"closed", "joining", "joined"} {
		w.vanish(name)
	}
	found := w.findOrphans(driver.OrphanQuery{})
	kinds := []string{driver.OrphanListener, driver.OrphanBackend, driver.OrphanLoadBalancer, driver.OrphanGroup, driver.OrphanAccessList}
	slices.SortStableFunc(found, func(a, b driver.Orphan) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	for i := range found {
		if len(found[i].Delete) == 0 {
			t.Errorf("no command deletes %s", found[i])
		}
		for _, command := range found[i].Delete {
			if code := w.emulator.CLI(command); code != "" {
				t.Errorf("%s: %s", command, code)
			}
		}
	}
	if left := w.orphans(); left != nil {
		t.Errorf("after the commands: %q", left)
	}
	if got := w.get("kept").Labels[driver.LabelLoadBalancerID]; got == "" || w.lb(got).ID == "" {
		t.Error("the CLB of a Service that is there is gone")
	}
}
