package slb

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// ids are the parts of an orphan's text that differ from run to run.
var ids = regexp.MustCompile(`\b(lb|acl|rsp)-[0-9a-z]+`)

// findOrphans returns what the report has with the Services as the API server has them, and fails on any write.
func (w *world) findOrphans(query driver.OrphanQuery) []driver.Orphan {
	w.t.Helper()
	list, err := w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		query.Services = append(query.Services, &list.Items[i])
	}
	w.calls()
	found, unread := w.Orphans(w.t.Context(), query)
	if len(unread) > 0 {
		w.t.Fatal(unread)
	}
	if writes := writesOf(w.calls()); len(writes) > 0 {
		w.t.Errorf("looking for orphans writes %v", writes)
	}
	return found.Orphans
}

// orphans returns what the report says.
func (w *world) orphans(query ...driver.OrphanQuery) []string {
	w.t.Helper()
	found := w.findOrphans(append(query, driver.OrphanQuery{})[0])
	var lines []string
	for i := range found {
		lines = append(lines, ids.ReplaceAllString(found[i].String(), "$1"))
	}
	slices.Sort(lines)
	return lines
}

func (w *world) vanish(name string) {
	w.t.Helper()
	if err := w.kube.CoreV1().Services(testNamespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// everyKindOfOwner makes Services of every kind that have something in the cloud, beside what is none of theirs.
func everyKindOfOwner(w *world) {
	w.t.Helper()
	shared := w.makeCLB()
	group := w.makeGroup(shared.ID, "shared", "k8s/80/far/default/c9")
	w.makeListener(shared.ID, 9000, "by hand")
	w.makeListener(shared.ID, 9001, "k8s/9001/far/default/c9")
	closed := testService("closed", 81)
	closed.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	for _, svc := range []*corev1.Service{
		testService("kept", 80), closed, reusing("joining", shared.ID, "true", 82), joining("joined", shared.ID, group+":83", 83),
	} {
		w.put(svc)
		w.converge(svc.Name)
	}
}

// TestOrphans: what the cluster made and no Service owns is listed; what belongs to another cluster, to a user, or to a
// Service that is there, is not.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		prepare func(*world)
		want    []string
	}{
		{"every Service is there", everyKindOfOwner, nil},
		{"Services whose finalizer somebody removed", func(w *world) {
			everyKindOfOwner(w)
			for _, name := range []string{"closed", "joining", "joined"} {
				w.vanish(name)
			}
		}, []string{
			"access control list acl (k8s-clb-a0f5e8a1cclosed): no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cclosed",
			"backend server i-a:30083 weight 100 (k8s/30083/joined/default/c1) in rsp: Service default/joined does not exist",
			"backend server i-b:30083 weight 100 (k8s/30083/joined/default/c1) in rsp: Service default/joined does not exist",
			"backend server i-c:30083 weight 100 (k8s/30083/joined/default/c1) in rsp: Service default/joined does not exist",
			"listener tcp:82 (k8s/82/joining/default/c1) in lb: Service default/joining does not exist",
			"listener tcp:83 (k8s/83/joined/default/c1) in lb: Service default/joined does not exist",
			"load balancer lb (a0f5e8a1cclosed): no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cclosed",
			"vServer group rsp (k8s/30082/joining/default/c1) in lb: Service default/joining does not exist",
		}},
		{"a Service that is on another CLB now", func(w *world) {
			w.put(reusing("joining", w.makeCLB().ID, "true", 82))
			w.converge("joining")
			second := w.makeCLB()
			w.change("joining", func(svc *corev1.Service) {
				svc.Labels[driver.LabelLoadBalancerID] = second.ID
				annotate(svc, annotation.LoadBalancerID, second.ID)
			})
		}, []string{
			"listener tcp:82 (k8s/82/joining/default/c1) in lb: Service default/joining is on another CLB",
			"vServer group rsp (k8s/30082/joining/default/c1) in lb: Service default/joining is on another CLB",
		}},
		{"a Service that let go of its CLB", func(w *world) {
			w.put(testService("web", 80))
			w.converge("web")
			w.change("web", func(svc *corev1.Service) {
				svc.Spec.Type, svc.Finalizers = corev1.ServiceTypeClusterIP, nil
			})
		}, []string{"load balancer lb (a0f5e8a1cweb): Service default/web no longer wants a load balancer of this manager"}},
		{"CLBs of another cluster, and of none", func(w *world) {
			w.officialCLB(testService("theirs", 80), "c9")
			w.makeCLB(alicloud.Tag{Key: mark.TagCluster, Value: testCluster})
		}, nil},
		{"what the official CCM made for this cluster", func(w *world) { w.officialCLB(testService("ours", 80), testCluster) },
			[]string{"load balancer lb (a0f5e8a1cours): no Service has the UID of the tag kubernetes.do.not.delete=a0f5e8a1cours"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			test.prepare(w)
			if diff := cmp.Diff(test.want, w.orphans()); diff != "" {
				t.Errorf("orphans (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrphansNeedEveryRead: a read that fails is an error, never "nothing there".
func TestOrphansNeedEveryRead(t *testing.T) {
	t.Parallel()
	for _, action := range []string{
		"DescribeLoadBalancers", "DescribeAccessControlLists", "DescribeLoadBalancerListeners", "DescribeVServerGroups",
		"DescribeVServerGroupAttribute",
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			lb := w.makeCLB(alicloud.Tag{Key: mark.TagReused, Value: "true"})
			w.makeGroup(lb.ID, "shared", "by hand")
			w.fault(map[string]any{"action": action, "code": "Forbidden.RAM", "status": 403})
			if found, unread := w.Orphans(t.Context(), driver.OrphanQuery{}); len(unread) == 0 || !alicloud.IsForbidden(unread[0]) {
				t.Errorf("orphans %v, unread %v; want the error of the call", found, unread)
			}
		})
	}
}
