package slb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// mixture is Services with a number of nodes beside Services that have all nodes, together just as many as the quota of each instance
// allows.
type mixture struct {
	*fleet
	nodes, numbered, number, whole int
}

const besideAttachments = 10

func newBeside(t *testing.T, nodes, numbered, number, whole, attachments int) *mixture {
	t.Helper()
	b := &mixture{newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
		BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, besideAttachments),
	}), nodes, numbered, number, whole}
	for i := range nodes {
		b.createFleetNode(nodeName(i))
	}
	return b
}

func (b *mixture) createNumbered() {
	for i := range b.numbered {
		svc := testService(fmt.Sprint("some", i), 80)
		annotate(svc, annotation.BackendSubset, strconv.Itoa(b.number))
		b.put(svc)
	}
}

func (b *mixture) createWhole() {
	for i := range b.whole {
		b.put(testService(fmt.Sprint("all", i), 80))
	}
}

// backends returns the instances behind each Service.
func (b *mixture) backends() map[string]sets.Set[string] {
	found := map[string]sets.Set[string]{}
	for _, svc := range b.names() {
		found[svc] = sets.New(b.backendsOf(svc)["30080"]...)
	}
	return found
}

func (b *mixture) names() []string {
	var names []string
	for i := range b.numbered {
		names = append(names, fmt.Sprint("some", i))
	}
	for i := range b.whole {
		names = append(names, fmt.Sprint("all", i))
	}
	return names
}

// checkServed checks that each Service has what it needs: the number that it asks for, or a part of the nodes.
func (b *mixture) checkServed(part float64) {
	b.t.Helper()
	for name, has := range b.backends() {
		least := b.number
		if name[0] == 'a' {
			least = int(float64(b.nodes) * part)
		}
		if has.Len() < least {
			b.t.Errorf("%s has %d nodes, want %d at least", name, has.Len(), least)
		}
	}
}

// checkChanges checks that no Service has given up more than two nodes since that are still there, or got more than two besides one that
// has come; any number if all nodes fit again.
func (b *mixture) checkChanges(what, node string, since map[string]sets.Set[string], fit bool) {
	b.t.Helper()
	changed, id := 0, "i-"+node
	for name, has := range b.backends() {
		came, left := has.Difference(since[name]), since[name].Difference(has)
		if came.Delete(id).Len() > 2 && !fit || left.Delete(id).Len() > 2 {
			b.t.Errorf("%s: %s loses %v and gets %v", what, name, sets.List(left), sets.List(came))
		}
		changed += min(came.Len()+left.Len(), 1)
	}
	b.t.Logf("%s: %d of %d Services have changed anything else", what, changed, len(since))
}

// TestSomeNodesBesideAllNodes: an instance can be behind 10 CLBs. 12 Services with 5 of 20 nodes and 7 that would have all nodes just fit
// on average, but not on each node. Whichever come first, nothing is ever refused, each is served, and in the end nothing is written, also
// by a new process.
func TestSomeNodesBesideAllNodes(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]func(*mixture){
		"some first": {(*mixture).createNumbered, (*mixture).createWhole},
		"all first":  {(*mixture).createWhole, (*mixture).createNumbered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBeside(t, 20, 12, 5, 7, besideAttachments)
				defer func() { b.stop() }()
				for _, create := range order {
					create(b)
					b.rest()
				}
				if n, _ := b.refused(); n > 0 {
					t.Errorf("%d calls were refused", n)
				}
				b.checkServed(0.6)
				for range 2 {
					time.Sleep(2 * time.Hour)
					b.checkWrites(0, "")
					b.replaceProcess()
				}
				b.rest()
				b.checkWrites(0, "")
			})
		})
	}
}

// TestNodeAtTheBorder: with 20 nodes every Service may have all nodes, with 19 there is one attachment too few. Nodes leave and join in
// turn, or several leave and then as many join, one after the other. Each changes at most one other backend server of each Service, except
// that a Service gets what it has lacked as soon as all nodes fit again, and nothing is refused.
func TestNodeAtTheBorder(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]bool{"in turn": {false, true, false, true, false, true},
		"down and up": {false, false, false, true, true, true, true, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBeside(t, 20, 10, 6, 7, besideAttachments)
				defer func() { b.stop() }()
				b.createNumbered()
				b.rest()
				b.createWhole()
				b.rest()
				nodes := b.nodes
				for i, joins := range events {
					before, node, what := b.backends(), nodeName(i), "a node leaves"
					if joins {
						node, what = fmt.Sprint("late", i), "a node joins"
						b.createFleetNode(node)
						nodes++
					} else {
						nodes--
						testkit.Check(t, b.kube.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
					}
					b.rest()
					b.checkChanges(what, node, before, nodes >= b.nodes && (!joins || events[i-1]))
				}
				b.checkServed(0.6)
				if n, _ := b.refused(); n > 0 {
					t.Errorf("%d calls were refused", n)
				}
			})
		})
	}
}

// TestUnknownSmallerQuota: an instance can be behind 8 CLBs only, and the manager believes in 10. Each instance is refused a few times,
// then all know, and each Service is served.
func TestUnknownSmallerQuota(t *testing.T) {
	t.Parallel()
	const attachments, mostRefused = 8, 150
	synctest.Test(t, func(t *testing.T) {
		b := newBeside(t, 20, 8, 5, 8, attachments)
		defer func() { b.stop() }()
		b.createNumbered()
		b.createWhole()
		time.Sleep(time.Hour)
		b.checkServed(0.5)
		first, _ := b.refused()
		time.Sleep(2 * time.Hour)
		b.checkServed(0.5)
		if later, _ := b.refused(); first > mostRefused || later > 2*mostRefused {
			t.Errorf("%d calls were refused in the first hour, %d in the next two", first, later)
		}
		t.Log(slices.Sorted(maps.Values(sizesOf(b.backends()))))
	})
}

func sizesOf(of map[string]sets.Set[string]) map[string]int {
	sizes := map[string]int{}
	for name, has := range of {
		sizes[name] = has.Len()
	}
	return sizes
}
