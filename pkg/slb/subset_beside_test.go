package slb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
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
