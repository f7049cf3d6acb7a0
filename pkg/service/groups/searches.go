package groups

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// searchAge is how long what a Service has read of the load balancers of its group counts for the others, as long as this process writes
// nothing there.
const searchAge = 2 * time.Minute

// search is the last one for the load balancers of a group: what it has found, and noted of their listeners. Without it, a start and each
// period would cost as many reads of all load balancers and listeners of a group as it has Services.
type search[LB any] struct {
	found []LB
	// usedBy are the UIDs of the Services that have used it: one that has to read again wants another answer.
	usedBy *sync.Map
}

// shareSearch notes what a search for a Service has found that began at a time, unless something was written since.
func (g *Groups[LB]) shareSearch(group mark.Group, svc types.UID, found []LB, at time.Time) {
	usedBy := &sync.Map{}
	usedBy.Store(svc, true)
	g.searches.Add(map[string]search[LB]{group.Mark(): {slices.Clone(found), usedBy}}, at)
}

// takeSearch returns what was found for another Service of the group, once for each Service.
func (g *Groups[LB]) takeSearch(group mark.Group, svc types.UID) ([]LB, bool) {
	last, ok := g.searches.Fresh(group.Mark(), searchAge)
	if !ok {
		return nil, false
	}
	_, used := last.usedBy.LoadOrStore(svc, true)
	return slices.Clone(last.found), !used
}

// dropSearch has searches that began until now count no longer: this process has written to a load balancer of the group, or one is
// missing.
func (g *Groups[LB]) dropSearch(group mark.Group) { g.searches.Drop(group.Mark()) }

// foundByOthers returns the load balancers of a group that another Service of it has read a short time ago, if the Service has no doubt of
// its own: it has its first pass, or is due for drift detection. What they do not show proves nothing: all listeners of the Service have to
// be there.
func (g *Groups[LB]) foundByOthers(of driver.Request, group mark.Group, known Known) ([]LB, bool) {
	if of.Applied != nil && (!of.DriftDue || of.Unsettled) {
		return nil, false
	}
	found, ok := g.takeSearch(group, of.Service.UID)
	before := beforeOf(of.Service, known, group)
	return found, ok && g.balancerByID(found, before) != nil && g.listedOn(group, of.Service, before)
}

// listedOn reports whether a load balancer of the group has listeners for all ports of the Service, as far as anybody has read.
func (g *Groups[LB]) listedOn(group mark.Group, svc *corev1.Service, id string) bool {
	known := g.Of(group.Mark())
	listed := known.On[mark.ServiceName(svc)][id]
	return !slices.ContainsFunc(portsOf(svc), func(port sharing.Port) bool { return !slices.Contains(listed, port) })
}
