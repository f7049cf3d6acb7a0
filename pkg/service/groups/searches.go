package groups

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// SearchAge is how long what a Service has read of the load balancers of its group counts for the others, as long as this process writes nothing there.
const SearchAge = 2 * time.Minute

// searches are the last search for the load balancers of each group, by the mark of the group: what it has found, and noted of their listeners. Without them, a
// start and each period would cost as many reads of all load balancers and listeners of a group as it has Services. The zero value is empty; several
// goroutines may use it.
type searches[LB any] struct {
	mu     sync.Mutex // guards byMark
	byMark map[string]search[LB]
}

type search[LB any] struct {
	found []LB
	// at is when it began, or, where it was dropped, when that was.
	at      time.Time
	dropped bool
	// usedBy are the Services that have used it: one that has to read again wants another answer.
	usedBy sets.Set[types.UID]
}

// take returns what was found for another Service of the group, once for each Service.
func (s *searches[LB]) take(group mark.Group, svc types.UID) ([]LB, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.byMark[group.Mark()]
	if !ok || last.dropped || time.Since(last.at) >= SearchAge || last.usedBy.Has(svc) {
		return nil, false
	}
	last.usedBy.Insert(svc)
	return slices.Clone(last.found), true
}

// add notes what a search for a Service has found that began at a time, unless something was written since.
func (s *searches[LB]) add(group mark.Group, svc types.UID, found []LB, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.byMark[group.Mark()]; last.dropped && !at.After(last.at) {
		return
	}
	s.setLocked(group, search[LB]{found: slices.Clone(found), at: at, usedBy: sets.New(svc)})
}

// drop has searches that began until now count no longer: this process has written to a load balancer of the group, or one is missing.
func (s *searches[LB]) drop(group mark.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(group, search[LB]{at: time.Now(), dropped: true})
}

func (s *searches[LB]) setLocked(group mark.Group, last search[LB]) {
	if s.byMark == nil {
		s.byMark = map[string]search[LB]{}
	}
	s.byMark[group.Mark()] = last
}

// foundByOthers returns the load balancers of a group that another Service of it has read a short time ago, if the Service has no doubt of its own: it has its
// first pass, or is due for drift detection. What they do not show proves nothing: all listeners of the Service have to be there.
func (g *Groups[LB]) foundByOthers(of service.Request, group mark.Group, known Known) ([]LB, bool) {
	if of.Applied != nil && (!of.DriftDue || of.Unsettled) {
		return nil, false
	}
	found, ok := g.searches.take(group, of.Service.UID)
	before := beforeOf(of.Service, known)
	return found, ok && g.in(found, before) != nil && g.listedOn(group, of.Service, before)
}

// listedOn reports whether a load balancer of the group has listeners for all ports of the Service, as far as anybody has read.
func (g *Groups[LB]) listedOn(group mark.Group, svc *corev1.Service, id string) bool {
	known := g.Of(group.Mark())
	listed := known.On[mark.ServiceName(svc)][id]
	return !slices.ContainsFunc(portsOf(svc), func(port sharing.Port) bool { return !slices.Contains(listed, port) })
}
