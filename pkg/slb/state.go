package slb

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// memory is what is known about one Service's CLB. It is rebuilt from the cloud; nothing of it is kept on the object.
// The lock of the Service guards it.
type memory struct {
	uid types.UID
	// actual is what is there: nil when there is no CLB or when nothing is known.
	actual *model.Model
	// fresh says that actual may be trusted until due.
	fresh bool
	// due is when the CLB is read again to repair drift.
	due time.Time
	// unsettled is until when a call whose end nobody has seen may still take effect: one of a process before this one, or
	// one without an answer. Zero before the first pass.
	unsettled time.Time
	// waiting is since when the Service's calls have been waiting for the rate limit, over several passes; zero when they
	// are not.
	waiting time.Time
	// drift says that the pass under way has no other cause than that it was due.
	drift bool
	// lost is the id of the Service's last CLB that is gone. It is part of the next one's client token: with the old
	// token the cloud would answer with the old, dead CLB.
	lost string
	// marked says that the Service may have had a CLB before this program saw it.
	marked bool
	// removing is the id of a CLB whose removal was begun, released that nothing of ours is left on the Service.
	removing string
	// reclaimed is the id of a CLB whose removal was begun before its Service wanted it again.
	reclaimed string
	released  bool
	// recreating is the id of a CLB that is gone and whose replacement has not been told yet.
	recreating string
	// interfaces maps addresses of pods to their network interfaces.
	interfaces map[string]string
	// ungated are pods that are not ready and have no readiness gate of the Service.
	ungated sets.Set[types.UID]
	// access is the list of the source ranges, which outlives the CLB; accessRead says that it was looked for.
	access     *alicloud.AccessList
	accessRead bool
	// eips are the elastic addresses of actual, nil before they were asked for.
	eips *eips
	// charge is the internet charge type that was last asked for.
	charge deploy.PendingCharge
	// groupsAsked is the annotation vgroup-port as it was when the cloud was last read.
	groupsAsked string
	// busy counts answers in a row that said "in transition".
	busy int
	// valid are the parameters of the last pass in which all annotations were accepted.
	valid *annotation.Params
	// extensionsRead says that actual has the domain extensions.
	extensionsRead bool
	// record is what was applied, as this process knows it; nil before it was loaded.
	record *Record
	// told are the problems that the user has been told about, failure the signature of the last failed attempt: one
	// event per outcome, not per attempt.
	told    map[problem.Problem]bool
	failure string
	// noted is what the log was last told, see [build.Ineffective].
	noted string
}

// patient reports whether "in transition" may still be what it says; after so many times somebody should hear of it.
func (m *memory) patient() bool { return m.busy < maxBusyInRow }

// asksForGroups reports whether the annotation was changed to name a group that was not there when the cloud was read. It
// may have been made since; one look tells.
func (m *memory) asksForGroups(params annotation.Params) bool {
	if m.actual == nil || !m.actual.Reused || params.Get(annotation.VGroupPort) == m.groupsAsked {
		return false
	}
	present := m.actual.ForeignGroups()
	ids, _ := annotation.VGroupsOf(params)
	for _, id := range ids {
		if !present.Has(id) {
			return true
		}
	}
	return false
}

// lastValid returns the parameters that count: an existing CLB keeps serving with the last ones that were valid.
func (m *memory) lastValid(params annotation.Params) annotation.Params {
	switch {
	case !params.Invalid:
		m.valid = &params
	case m.valid != nil:
		return *m.valid
	}
	return params
}

// protectAgain asks for the delete protection of a new CLB where a removal that was begun has switched it off.
func (m *memory) protectAgain(desired *model.Model) {
	if m.actual != nil && !m.actual.Reused && m.actual.LoadBalancer.ID == m.reclaimed && desired.LoadBalancer.DeleteProtection == "" {
		desired.LoadBalancer.DeleteProtection = desired.Create.DeleteProtection
	}
}

// longestCall is how long a call may go on in the cloud after whoever made it is gone: the client's timeout, and some more.
const longestCall = 30 * time.Second

// begin notes before the first pass that a process before this one may have worked on the Service a moment ago.
func (m *memory) begin(held bool) {
	if !m.unsettled.IsZero() {
		return
	}
	if m.unsettled = time.Now(); held {
		m.unsettled = m.unsettled.Add(longestCall)
	}
}

// lookAgain has the cloud read once more after a plan that was made while an earlier call may still have been under way: what
// that does in the end, a second group of the same name for example, would else be found by the next look for drift.
func (m *memory) lookAgain(plan model.Plan) {
	if !plan.Empty() && time.Now().Before(m.unsettled) && m.unsettled.Before(m.due) {
		m.due = m.unsettled
	}
}

// doubt makes the next pass read before it writes.
func (m *memory) doubt() { m.fresh = false }

// forget drops what is known of a CLB that is gone.
func (m *memory) forget(id string) {
	m.actual, m.fresh, m.lost = nil, false, id
}

// memories are those of all Services.
type memories struct {
	mu    sync.Mutex // guards byKey
	byKey map[types.NamespacedName]*memory
}

// of returns the memory of a Service; one of the same name that was deleted and made anew has none.
func (m *memories) of(svc *corev1.Service) *memory {
	key := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey == nil {
		m.byKey = map[types.NamespacedName]*memory{}
	}
	known, ok := m.byKey[key]
	if !ok || known.uid != svc.UID {
		known = &memory{uid: svc.UID}
		m.byKey[key] = known
	}
	return known
}

func (m *memories) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
