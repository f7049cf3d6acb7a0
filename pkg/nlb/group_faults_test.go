package nlb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// changesOfGroups are operations in which more than one thing changes at a time.
func changesOfGroups() []operation {
	pass := func(w *world, names ...string) {
		for _, name := range names {
			if w.transport.isDead() {
				w.restart()
			}
			w.fillServices()
			_, _ = w.Reconcile(w.t.Context(), w.get(name))
		}
		if w.transport.isDead() {
			w.restart()
		}
	}
	halfMoved := func(w *world) {
		pass(w, "web", "web")
		w.later(30 * settle)
		pass(w, "web", "web")
		w.later(3 * settle)
		pass(w, "web")
	}
	web, shop := webInGroup, grouped("shop", "edge", 2, testkube.TCP(81))
	only := map[string][]string{edgeNLB: {"tcp:81 shop"}}
	return []operation{
		{"renamed twice", servedTogether(web(), shop), func(w *world) {
			w.change("web", with(annotation.Group, "third"))
			pass(w, "web")
			w.change("web", with(annotation.Group, "other"))
		}, inGroups(webElsewhere), nil},
		{"renamed twice, some passes between", servedTogether(web(), shop), func(w *world) {
			w.change("web", with(annotation.Group, "third"))
			halfMoved(w)
			w.change("web", with(annotation.Group, "other"))
		}, inGroups(webElsewhere), nil},
		{"away and back", servedTogether(web(), shop), func(w *world) {
			w.change("web", with(annotation.Group, "other"))
			halfMoved(w)
			w.change("web", with(annotation.Group, "edge"))
		}, inGroups(webAndShop), nil},
		{"both move at once", servedTogether(web(), shop), func(w *world) {
			w.change("web", with(annotation.Group, "other"))
			w.change("shop", with(annotation.Group, "other"))
		}, inGroups(map[string][]string{otherNLB: {"tcp:80 web", "tcp:81 shop"}}), nil},
		{"leader deleted while a follower is made", func(w *world) {
			w.addNodes("n1", "n2")
			w.put(web())
			w.converge("web")
		}, func(w *world) {
			w.put(shop.DeepCopy())
			pass(w, "shop")
			w.remove("web")
			w.companions = []string{"shop"}
		}, inGroups(only), nil},
		{"last one deleted while another joins", func(w *world) {
			w.addNodes("n1", "n2")
			w.put(web())
			w.converge("web")
			w.put(grouped("shop", "edge", 2, testkube.TCP(81), without(annotation.Group)))
			w.converge("shop")
		}, func(w *world) {
			w.remove("web")
			pass(w, "web")
			w.change("shop", with(annotation.Group, "edge"))
			w.companions = []string{"shop"}
		}, inGroups(only), nil},
		{"last one deleted after another began to join", func(w *world) {
			w.addNodes("n1", "n2")
			w.put(web())
			w.converge("web")
			w.put(grouped("shop", "edge", 2, testkube.TCP(81), without(annotation.Group)))
			w.converge("shop")
		}, func(w *world) {
			w.change("shop", with(annotation.Group, "edge"))
			pass(w, "shop")
			w.remove("web")
			w.companions = []string{"shop"}
		}, inGroups(only), nil},
		{"leader deleted while it is made", func(w *world) { w.addNodes("n1", "n2") }, func(w *world) {
			w.put(web())
			w.put(shop.DeepCopy())
			pass(w, "web", "shop")
			w.remove("web")
			w.companions = []string{"shop"}
		}, inGroups(only), nil},
		{"all deleted while it is made", func(w *world) { w.addNodes("n1", "n2") }, func(w *world) {
			w.put(web())
			w.put(shop.DeepCopy())
			pass(w, "web", "shop")
			w.remove("web")
			w.remove("shop")
			w.companions = []string{"shop"}
		}, inGroups(map[string][]string{}), nil},
		{"removed while it leaves", servedTogether(web(), shop), func(w *world) {
			w.change("web", without(annotation.Group))
			pass(w, "web")
			w.later(30 * settle)
			pass(w, "web", "web")
			w.remove("web")
		}, inGroups(only), nil},
		{"named by id", servedTogether(web(), shop), func(w *world) {
			id := w.only(edgeNLB).ID
			w.change("web", with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"))
			w.remove("shop")
		}, nil, nil},
		{"out of a group with ranges", servedTogether(web(), shop), func(w *world) {
			w.change("web", without(annotation.Group), sourceRanges)
		}, inGroups(map[string][]string{edgeNLB: {"tcp:81 shop"}, ownNLB: {"tcp:80 web"}}), nil},
		{"into a group without ranges", servedTogether(web(without(annotation.Group), sourceRanges), shop), func(w *world) {
			w.change("web", with(annotation.Group, "edge"), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil })
		}, inGroups(webAndShop), nil},
		{"security groups of the oldest", servedTogether(web(), shop), func(w *world) {
			w.change("web", with(annotation.AddressType, "intranet"), with(annotation.Name, "x"), with(annotation.DeleteProtection, "off"))
		}, nil, nil},
	}
}

// TestKilledWhileGroupsChange is [TestKilledAfterEveryWrite] for more operations of groups.
func TestKilledWhileGroupsChange(t *testing.T) {
	t.Parallel()
	killed(t, changesOfGroups())
}

// TestWritesOfGroupsMayGoWrong is [TestEveryWriteMayGoWrong] for more operations of groups.
func TestWritesOfGroupsMayGoWrong(t *testing.T) {
	t.Parallel()
	goWrong(t, changesOfGroups(), mainFaults())
}
