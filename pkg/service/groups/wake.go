package groups

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// wakePause is how long a Service does not wake others again for the same reason. Those may fail or wait for the same as it does, and wake
// it in turn: without the pause, the passes would follow each other without end.
const wakePause = 10 * time.Second

// WakeAll has passes made over all other Services of the group. why says what has changed for them, or what the Service waits for.
func (g *Groups[LB]) WakeAll(group mark.Group, svc *corev1.Service, why string) {
	members, err := g.Members(group, svc)
	if g.Wake == nil || err != nil || !g.isNews(svc.UID, why, time.Now()) {
		return
	}
	for _, member := range members {
		if member.UID != svc.UID {
			g.Wake(mark.ServiceName(member))
		}
	}
}

// WakeConcerned has passes made over those of the other Services of a group whose standing is another one than they know of, and over those
// that want one of the ports which a plan for svc was to free on a load balancer. A pass over each of them for each listener that comes or
// goes would be as many passes as the square of the Services.
func (g *Groups[LB]) WakeConcerned(group mark.Group, svc *corev1.Service, id string, freed []sharing.Port) {
	if g.Wake == nil {
		return
	}
	standings, err := g.placementsOf(group, svc)
	if err != nil {
		return
	}
	if len(freed) > 0 && !g.isNews(svc.UID, fmt.Sprint(id, freed), time.Now()) {
		freed = nil // the cloud has not deleted the listeners at the last attempt, and may not do so now
	}
	for _, of := range standings {
		isFree := func(port sharing.Port) bool { return slices.Contains(freed, port) }
		if of.UID != svc.UID && (g.learnPlacement(of.UID, of.standing) || of.standing.place == id && slices.ContainsFunc(of.Ports, isFree)) {
			g.Wake(of.Name)
		}
	}
}

// WakeOnConflict has passes made over those Services of a group that have a port which is to be the Service's by now, where its plan has
// nothing else to do.
func (g *Groups[LB]) WakeOnConflict(group mark.Group, svc *corev1.Service, id string, problems []problem.Problem) {
	if !group.IsZero() && problem.HasReason(problems, problem.ReasonListenerConflict) {
		g.WakeConcerned(group, svc, id, nil)
	}
}

// noteStanding notes that a pass over a Service acts on its standing.
func (g *Groups[LB]) noteStanding(group mark.Group, svc *corev1.Service) error {
	standings, err := g.placementsOf(group, svc)
	for _, of := range standings {
		if of.UID == svc.UID {
			g.learnPlacement(of.UID, of.standing)
		}
	}
	return err
}

// placement is what counts of the place of a Service for what it has there. A Service whose standing changes needs a pass.
type placement struct {
	place  string
	leader types.UID
	// taken and unused are those of the place as texts, which can be compared.
	taken, unused string
	full, kept    bool
}

// servicePlacement is a Service with its standing.
type servicePlacement struct {
	sharing.Service

	standing placement
}

// placementsOf are those of the Services of a group. svc is one of them, as the pass has it, unless it leaves the group.
func (g *Groups[LB]) placementsOf(group mark.Group, svc *corev1.Service) ([]servicePlacement, error) {
	r, err := g.buildMembership(group, svc, false)
	if err != nil {
		return nil, err
	}
	if !r.members[0].isIn(group) {
		r.members, r.services = r.members[1:], r.services[1:]
	}
	r = g.settledMembership(r, nil)
	places := sharing.DecideAll(r.services, r.balancers, r.most)
	all := make([]servicePlacement, len(r.services))
	for i, of := range r.services {
		place := places[of.UID]
		all[i] = servicePlacement{of, placement{
			place: place.ID, leader: place.Leader, taken: fmt.Sprint(place.Taken), unused: strings.Join(place.Unused, " "), full: place.Full,
			kept: place.Kept,
		}}
	}
	return all, nil
}

// learnPlacement notes the standing of a Service as the one that it knows of, and reports whether that is news.
func (m *Memory) learnPlacement(svc types.UID, now placement) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.standings == nil {
		m.standings = map[types.UID]placement{}
	}
	before, known := m.standings[svc]
	m.standings[svc] = now
	return !known || before != now
}

// wakeUp is why and when a Service has woken others.
type wakeUp struct {
	why string
	at  time.Time
}

// isNews reports whether a Service is to wake others, and notes that it does.
func (m *Memory) isNews(svc types.UID, why string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.woke[svc]; ok && last.why == why && now.Sub(last.at) < wakePause {
		return false
	}
	if m.woke == nil {
		m.woke = map[types.UID]wakeUp{}
	}
	m.woke[svc] = wakeUp{why, now}
	return true
}
