package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// TestLabelBesideAStatus: a Service whose status shows a CLB that it may use, and whose author gives it the label of another one, on which
// a Service of its name in another cluster is, changes nothing there, neither then nor when it goes.
func TestLabelBesideAStatus(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{literalClusterID, "c9"} {
		for _, untagged := range []bool{false, true} {
			for _, inGroup := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, untagged %v, in a group %v", cluster, untagged, inGroup), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.config.ClusterID = cluster
					w.restart()
					threeNodes(w)
					theirs := w.makeCLB().ID
					w.put(reusing("web", theirs, "true", 80))
					w.mustPass("web")
					if untagged {
						w.untagged(theirs)
					}
					lb, before := w.lb(theirs), w.contents(theirs)
					w.vanish("web")
					for _, name := range []string{"a", "b", "c"} {
						w.deleteNode(name)
					}
					w.addNode("d")
					w.config.ClusterID, w.config.Policy.LoadBalancerReuse = "c3", policy.ReuseTagged
					w.restart()
					svc := reusing("web", w.makeCLB(alicloud.Tag{Key: mark.TagAllow, Value: "c3"}).ID, "true", 80)
					if inGroup {
						svc = grouped("web", "edge", 80)
					}
					svc.UID = "1a2b3c4d-another"
					w.put(svc)
					w.mustPass("web")
					for _, edit := range []func(*corev1.Service){func(*corev1.Service) {}, deleteService} {
						w.change("web", func(svc *corev1.Service) {
							delete(svc.Annotations, key(annotation.LoadBalancerID))
							delete(svc.Annotations, key(annotation.Group))
							edit(withLabelOf(svc, theirs))
						})
						w.restart()
						w.passes("web", 6)
						if diff := cmp.Diff(before, w.contents(theirs)); diff != "" {
							t.Errorf("listeners and groups (-before +after):\n%s", diff)
						}
						if diff := cmp.Diff(lb, w.lb(theirs)); diff != "" {
							t.Errorf("CLB (-before +after):\n%s", diff)
						}
					}
				})
			}
		}
	}
}

// TestIDsTellNothing: whoever can edit Services finds out neither by the label nor by the annotation which ids the account has.
func TestIDsTellNothing(t *testing.T) {
	t.Parallel()
	for by, naming := range map[string]func(*corev1.Service, string) *corev1.Service{
		"label": withLabelOf,
		"annotation": func(svc *corev1.Service, id string) *corev1.Service {
			annotate(svc, annotation.LoadBalancerID, id)
			return svc
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			tellsNothing(t, naming)
		})
	}
}

func tellsNothing(t *testing.T, naming func(*corev1.Service, string) *corev1.Service) {
	t.Helper()
	heard := func(tags ...alicloud.Tag) string {
		w := newWorld(t)
		w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
		w.restart()
		threeNodes(w)
		id := "lb-none"
		if len(tags) > 0 {
			id = w.makeCLB(tags...).ID
		}
		w.put(naming(claimant("claim"), id))
		var said []string
		for range 4 {
			if err := w.pass("claim"); err != nil {
				said = append(said, err.Error())
			}
		}
		said = append(said, w.newEvents()...)
		for _, condition := range w.get("claim").Status.Conditions {
			if condition.Type != driver.ConditionWritten {
				said = append(said, condition.Reason, condition.Message)
			}
		}
		text := strings.ReplaceAll(strings.Join(said, "\n"), id, "ID")
		if own := w.get("claim").Labels[driver.LabelLoadBalancerID]; own != "" {
			text = strings.ReplaceAll(text, own, "ID")
		}
		return text
	}
	want := heard()
	for _, tag := range []alicloud.Tag{
		{Key: "team", Value: "payroll"}, {Key: mark.TagReused, Value: "true"}, {Key: mark.TagAllow, Value: "c2"},
		{Key: mark.TagOwner, Value: "a1"}, {Key: mark.TagGroup, Value: "c1/default/edge"},
	} {
		if got := heard(tag); got != want {
			t.Errorf("of one with the tag %s it is said\n%s\nand of one that does not exist\n%s", tag.Key, got, want)
		}
	}
}

// TestPreservedOnACLBOfOthers: a Service that wants to be preserved, and names a CLB on which a Service of its name in another cluster is,
// writes nothing to that when it goes.
func TestPreservedOnACLBOfOthers(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{"c2", literalClusterID} {
		w := newWorld(t)
		threeNodes(w)
		w.config.Policy.LoadBalancerReuse = policy.ReuseTagged
		w.restart()
		id := w.makeCLB(alicloud.Tag{Key: mark.TagReused, Value: "true"}).ID
		w.makeListener(id, 443, "k8s/443/claim/default/"+cluster)
		svc := claimant("claim")
		annotate(svc, annotation.LoadBalancerID, id)
		annotate(svc, annotation.PreserveOnDelete, "true")
		w.put(svc)
		w.passes("claim", 2)
		w.change("claim", deleteService)
		w.calls()
		w.passes("claim", 5)
		if writes := writesOf(w.calls()); len(writes) > 0 {
			t.Errorf("%s: writes %v, tags %v", cluster, writes, w.lb(id).Tags)
		}
	}
}
