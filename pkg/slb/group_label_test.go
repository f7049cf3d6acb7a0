package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// withLabelOf gives a Service the label of a CLB, as a backup tool does, or whoever can edit Services.
func withLabelOf(svc *corev1.Service, id string) *corev1.Service {
	svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
	return svc
}

// noMoreCLBs has the cloud refuse further CLBs.
func (w *world) noMoreCLBs() {
	w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "ORDER.QUOTA_EXCEEDED", "status": 400, "times": 100})
}

// passes makes passes over a Service, which may fail.
func (w *world) passes(name string, times int) {
	w.t.Helper()
	for range times {
		if err := w.pass(name); err != nil {
			w.t.Log(err)
		}
	}
}

// TestLabelOfAGroupInAnotherCluster: a backup of one cluster is restored in another one, with the label of a CLB that a group of the first
// shares. Nothing there changes, also if the Service can get no CLB.
func TestLabelOfAGroupInAnotherCluster(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"", "edge"} {
		for _, others := range []bool{false, true} {
			for _, refused := range []bool{false, true} {
				t.Run(fmt.Sprintf("group %q, others %v, refused %v", group, others, refused), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					threeNodes(w)
					theirs := w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c2/default/edge"})
					w.makeListener(theirs.ID, 80, "k8s/80/web/default/c2")
					if others {
						w.makeListener(theirs.ID, 81, "k8s/81/shop/default/c2")
					}
					before := w.state()["mine"]
					web := testService("web", 80)
					if group != "" {
						web = grouped("web", group, 80)
					}
					if refused {
						w.noMoreCLBs()
					}
					w.put(withLabelOf(web, theirs.ID))
					w.passes("web", 8)
					if diff := cmp.Diff(before, w.state()["mine"]); diff != "" {
						t.Errorf("the CLB of the other cluster (-before +after):\n%s", diff)
					}
					if address := w.address("web"); address == theirs.Address || !refused && address == "" {
						t.Errorf("the status shows %q, and %s is the other cluster's", address, theirs.Address)
					}
				})
			}
		}
	}
}

// withRecordOfAnother is a Service with the status of another one, from which it was restored: its Record has the text, with the id of a
// CLB in place of ID.
func withRecordOfAnother(svc *corev1.Service, text string, lb alicloud.LoadBalancer) *corev1.Service {
	svc = withLabelOf(svc, lb.ID)
	svc.Finalizers = []string{Finalizer}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: lb.Address}}
	testkube.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten, strings.ReplaceAll(text, "ID", lb.ID))
	return svc
}

// TestRecordOfAGroupInAnotherCluster: a backup of one cluster is restored in another one, with the status that says on which CLB of a group
// the Service is, or was. Nothing there changes, also if the Service is deleted.
func TestRecordOfAGroupInAnotherCluster(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"in the group":                        `{"loadBalancer":"ID","group":"c2/default/edge","uid":"theirs"}`,
		"leaves by mark":                      `{"loadBalancer":"","leaving":["c2/default/edge"],"uid":"theirs"}`,
		"in the group, of no known Service":   `{"loadBalancer":"ID","group":"c2/default/edge"}`,
		"leaves by mark, of no known Service": `{"loadBalancer":"","leaving":["c2/default/edge"]}`,
		"leaves both":                         `{"loadBalancer":"","leaving":["ID","c2/default/edge"],"shows":"ID","uid":"theirs"}`,
	} {
		for _, group := range []string{"", "edge"} {
			for _, deleted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, now in group %q, deleted %v", name, group, deleted), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					threeNodes(w)
					theirs := w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c2/default/edge"})
					w.makeListener(theirs.ID, 80, "k8s/80/web/default/c2")
					before := w.state()["mine"]
					web := testService("web", 80)
					if group != "" {
						web = grouped("web", group, 80)
					}
					w.put(withRecordOfAnother(web, record, theirs))
					if deleted {
						w.change("web", deleteService)
					}
					w.passes("web", 8)
					if diff := cmp.Diff(before, w.state()["mine"]); diff != "" {
						t.Errorf("the CLB of the other cluster (-before +after):\n%s", diff)
					}
				})
			}
		}
	}
}

// TestForgedLabelInAGroup: a Service with the label of the CLB of another group, as anybody can write it, gets nothing there while it lacks
// its port in its own group, or that can get no CLB.
func TestForgedLabelInAGroup(t *testing.T) {
	t.Parallel()
	for why, group := range map[string]string{"port": "edge", "creation": "third"} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 80), grouped("mail", "other", 82))
			want := w.ownersOf()
			w.noMoreCLBs()
			w.put(withLabelOf(born(grouped("web", group, 80), 9), w.get("mail").Labels[driver.LabelLoadBalancerID]))
			w.passes("web", 5)
			wantOwners(t, w, want)
			if address := w.address("web"); address != "" {
				t.Errorf("the status shows %s", address)
			}
		})
	}
}

// TestGuestJoinsAnotherGroup: a Service that uses the CLB of a group by its ID is put into another group, and leaves nothing on that of the
// first.
func TestGuestJoinsAnotherGroup(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 81))
			w.putAll(reusing("web", w.onlyCLB(), "true", 80))
			then(w)
			w.change("web", func(svc *corev1.Service) { svc.Annotations = grouped("web", "other", 80).Annotations })
			w.passes("web", 4)
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}, "k8s-group-default-other": {"tcp:80 web"}})
		})
	}
}

// TestGuestOfAnotherClusterJoinsAGroup: a Service that uses the CLB of a group in another cluster by its ID is put into a group. The other
// cluster keeps what it has, also if a Service of the same name has it.
func TestGuestOfAnotherClusterJoinsAGroup(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			theirs := w.makeCLB(alicloud.Tag{Key: mark.TagGroup, Value: "c2/default/edge"}, alicloud.Tag{Key: mark.TagAllow, Value: testCluster})
			w.makeListener(theirs.ID, 81, "k8s/81/web/default/c2")
			namesake := w.makeGroup(theirs.ID, "k8s/30080/web/default/c2", "k8s/30080/web/default/c2")
			w.putAll(reusing("web", theirs.ID, "true", 80))
			wantOwners(t, w, map[string][]string{"mine": {"tcp:80 web", "tcp:81 web"}})
			then(w)
			w.change("web", func(svc *corev1.Service) { svc.Annotations = grouped("web", "edge", 80).Annotations })
			w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
			w.passes("web", 3)
			w.addNode("d")
			w.deleteNode("a")
			w.passes("web", 3) // it shows the old CLB, where its own backend servers follow
			if servers := testkit.Must(w.api.DescribeVServerGroup(t.Context(), namesake))(t).Backends; len(servers) != 1 ||
				servers[0].ServerID != "i-far" {
				t.Errorf("the vServer group of the other cluster has %v", servers)
			}
			w.clearFaults()
			w.passes("web", 8)
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web"}, "mine": {"tcp:81 web"}})
		})
	}
}
