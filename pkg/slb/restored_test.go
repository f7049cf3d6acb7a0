package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// restored makes of a world another cluster in which a backup tool has restored the Service: with its labels, annotations and finalizers,
// without its status, and with a UID of its own.
func (w *world) restored(clusterID string) {
	w.t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		w.deleteNode(name)
	}
	w.addNode("d")
	w.config.ClusterID = clusterID
	w.change("web", func(svc *corev1.Service) { svc.UID, svc.Status = "1a2b3c4d-restored", corev1.ServiceStatus{} })
	w.restart()
}

// TestRestoredServiceTakesNothing: a Service that a backup tool restored in another cluster neither takes over nor removes what the
// Service of its name has in the first one, on a CLB that both name and on a CLB of its own.
func TestRestoredServiceTakesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, first, second string }{
		{"literal id, then one of its own", literalClusterID, "c2"},
		{"literal id in both", literalClusterID, literalClusterID},
		{"ids of their own", "c1", "c2"},
	} {
		for _, reused := range []bool{true, false} {
			for _, untagged := range []bool{false, true} {
				name := test.name
				if reused {
					name += ", shared CLB"
				}
				if untagged {
					name += ", without tags"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.config.ClusterID = test.first
					w.restart()
					threeNodes(w)
					svc := testService("web", 80)
					if reused {
						svc = reusing("web", w.makeCLB().ID, "true", 80)
					}
					w.put(svc)
					w.mustPass("web")
					if untagged {
						w.untagged(w.onlyCLB())
					}
					id := w.get("web").Labels[driver.LabelLoadBalancerID]
					before := w.contents(id)
					w.restored(test.second)
					for range 3 {
						_ = w.pass("web") //nolint:errcheck // whether it fails does not matter
					}
					if diff := cmp.Diff(before, w.contents(id)); diff != "" {
						t.Errorf("the first cluster's (-before +after the restore):\n%s", diff)
					}
					w.change("web", deleteService)
					for range 3 {
						_ = w.pass("web") //nolint:errcheck // the same
					}
					if diff := cmp.Diff(before, w.contents(id)); diff != "" {
						t.Errorf("the first cluster's (-before +after the deletion):\n%s", diff)
					}
				})
			}
		}
	}
}

// contents are the listeners and groups with marks of the first cluster on a CLB, with their backend servers.
func (w *world) contents(id string) map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	listeners, err := w.api.DescribeListeners(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, listener := range listeners[id] {
		found[listener.String()] = []string{listener.Description, listener.VServerGroupID, listener.Status}
	}
	groups, err := w.api.DescribeVServerGroups(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, group := range groups {
		if _, cluster, _ := mark.Parse(group.Name); cluster == "c2" {
			continue // the second cluster's own
		}
		full, err := w.api.DescribeVServerGroup(w.t.Context(), group.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		found[group.Name] = []string{group.ID}
		for _, server := range full.Backends {
			found[group.Name] = append(found[group.Name], server.String())
		}
	}
	return found
}
