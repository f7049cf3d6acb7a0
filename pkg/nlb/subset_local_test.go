package nlb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// fullOfPods is an NLB that takes so many servers, and the Service web with externalTrafficPolicy Local.
func (w *world) fullOfPods(servers int) {
	w.t.Helper()
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): servers})
	w.restart()
	w.put(newService("web", testkube.TCP(80), func(svc *corev1.Service) {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}))
}

func quotaOf(servers int) func(*cloud.Config) {
	return func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = servers }
}

// zoned adds nodes of a zone.
func (w *world) zoned(zone string, names ...string) {
	w.t.Helper()
	w.addNodes(names...)
	for _, name := range names {
		testkit.Check(w.t,
			w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(testkube.Node(name, func(n *corev1.Node) {
				n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
			})))
	}
}

// podsOn has so many pods of web on each node.
func (w *world) podsOn(pods map[string]int) {
	w.t.Helper()
	var items []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for i := range pods[name] {
			items = append(items, fmt.Sprintf("10.244.%s.%d@%s", name[1:], i+1, name))
		}
	}
	w.putSlice(slice1(items...))
}

// onNodes are the nodes behind web.
func (w *world) onNodes() []string {
	w.t.Helper()
	var names []string
	for _, server := range w.serversOf("web") {
		id, _, _ := strings.Cut(server, ":")
		names = append(names, strings.TrimPrefix(id, "i-"))
	}
	slices.Sort(names)
	return names
}

// unrefused checks that nothing was refused.
func (w *world) unrefused() {
	w.t.Helper()
	for _, call := range w.calls() {
		if strings.Contains(call, "=") {
			w.t.Errorf("refused: %s", call)
		}
	}
}

// TestEventAboutAFullNLB: one event says how many backends get no traffic, and nothing that does not help on an NLB.
func TestEventAboutAFullNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2", "n3")
		w.podsOn(map[string]int{"n1": 1, "n2": 1, "n3": 1})
		w.fullOfPods(2)
		w.converge("web")
		events := slices.DeleteFunc(w.newEvents(), func(e string) bool { return !strings.Contains(e, problem.ReasonQuotaReached) })
		if len(events) != 1 || !strings.Contains(events[0], "1 of 3 backends of a port get no traffic: the NLB can have 2") ||
			strings.Contains(events[0], "use an NLB") {
			t.Errorf("events %q, want one with the numbers", events)
		}
	}, quotaOf(2))
}

// TestPlacesByWeight: a node with many more pods takes the place of another one of its zone, also on an NLB, and one pod more or less
// changes nothing then.
func TestPlacesByWeight(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.zoned("zone-0", "n1", "n2", "n3")
		w.podsOn(map[string]int{"n1": 2, "n2": 2, "n3": 1})
		w.fullOfPods(2)
		w.converge("web")
		for _, step := range []struct {
			pods map[string]int
			want []string
		}{
			{map[string]int{"n1": 2, "n2": 2, "n3": 3}, []string{"n1", "n2"}},
			{map[string]int{"n1": 2, "n2": 3, "n3": 4}, []string{"n2", "n3"}},
			{map[string]int{"n1": 3, "n2": 2, "n3": 4}, []string{"n2", "n3"}},
		} {
			w.podsOn(step.pods)
			w.converge("web")
			w.unrefused()
			if got := w.onNodes(); !slices.Equal(got, step.want) {
				t.Errorf("pods %v: nodes %v, want %v", step.pods, got, step.want)
			}
			w.quiet("web")
		}
	}, quotaOf(2))
}
