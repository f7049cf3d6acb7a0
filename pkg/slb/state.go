package slb

import (
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// state is what is known of one Service between passes. It is a value: a pass works on its own, and [states.commit] alone
// replaces the one that the next pass starts with. It can be rebuilt from the Service and the cloud.
type state struct {
	uid types.UID
	clb observed
	// record is what was applied; nil before it was loaded.
	record *Record
	// lastValid are the parameters as they were last accepted, each by itself.
	lastValid *annotation.Params
	removal   removal
	backoff   backoff
	cache     backendCache
	// charge is the internet charge type that was last asked for.
	charge deploy.PendingCharge
	// driftAt is when the CLB is read again to repair drift.
	driftAt time.Time
	// settledAt is when every call whose end nobody has seen has come to an end in the cloud: one of a process before this one,
	// or one without an answer. Zero before the first pass.
	settledAt time.Time
	// replaced is the id of a CLB that vanished and whose replacement has no event yet.
	replaced string
	// failure is the signature of the last failed attempt, empty after a success.
	failure string
	// ineffective is what the log last said about annotations that do not act as they read.
	ineffective string
}

// removal is how far the tear-down of a Service went.
type removal struct {
	// of is the id of a CLB whose removal was begun.
	of string
	// released says that nothing of ours is left on the Service.
	released bool
	// reclaimed is the id of a CLB whose removal was begun before its Service wanted it again. Its delete protection is off.
	reclaimed string
}

// backoff is how long the Service has been waiting for the cloud.
type backoff struct {
	// waitingSince is since when the Service's calls have been waiting for the rate limit, over several passes; zero when they
	// are not.
	waitingSince time.Time
	// busy counts answers in a row that said "in transition".
	busy int
}

// patient reports whether "in transition" may still be what it says; after so many times somebody should hear of it.
func (b backoff) patient() bool { return b.busy < maxBusyInRow }

// backendCache holds what never changes of a backend for as long as it is one.
type backendCache struct {
	// interfaces maps addresses of pods to their network interfaces.
	interfaces map[string]string
	// ungated are pods that are not ready and have no readiness gate of the Service.
	ungated sets.Set[types.UID]
}

// longestCall is how long a call may go on in the cloud after whoever made it is gone: the client's timeout, and some more.
const longestCall = 30 * time.Second

// began returns the state of a Service that wants a CLB. A process before this one may have worked on the Service a moment ago.
func (s state) began(adopted bool) state {
	if s.settledAt.IsZero() {
		s.settledAt = time.Now()
		if adopted {
			s.settledAt = s.settledAt.Add(longestCall)
		}
	}
	if s.removal.of != "" {
		s.removal.reclaimed = s.removal.of
	}
	s.removal.of, s.removal.released = "", false
	return s
}

// request returns what [engine.refresh] needs to know of the Service.
func (s state) request(svc *corev1.Service, params annotation.Params, adopted bool) request {
	return request{svc: svc, params: params, adopted: adopted, driftDue: !time.Now().Before(s.driftAt), record: s.record, charge: s.charge}
}

// refreshed returns the state after the CLB was read.
func (s state) refreshed(found refreshed, resyncPeriod time.Duration) state {
	s.clb = found.clb
	if found.record != nil {
		s.record = found.record
	}
	if found.some {
		s.cache.interfaces = nil
	}
	if found.whole {
		s.driftAt = time.Now().Add(resyncPeriod + rand.N(resyncPeriod/5+1))
		if absent, ok := s.clb.presence.(gone); ok && absent.vanished {
			s.replaced = absent.lastID
		}
	}
	return s
}

// deployed returns the state after a plan was carried out.
func (s state) deployed(d deployment) state {
	s.clb = s.clb.deployed(d)
	if d.charge.Asked != "" {
		s.charge = d.charge
	}
	if d.lost != "" {
		s.replaced = s.clb.lastID()
		return s
	}
	if len(d.doubts) > 0 || d.refusedServer {
		s.cache.interfaces = nil
	}
	if len(d.doubts) > 0 {
		s.settledAt = time.Now().Add(longestCall)
	}
	switch {
	case d.interrupted:
	case d.err == nil:
		s.backoff.busy, s.removal.reclaimed = 0, ""
	case d.progress:
		s.backoff.busy = 0 // a large change takes many calls, and each may find the CLB busy once
	default:
		if s.backoff.busy++; s.backoff.busy%maxBusyInRow == 0 {
			s.clb = s.clb.invalidate("the cloud keeps answering that it is busy")
		}
	}
	return s
}

// readAgainOnceSettled has the CLB read once more after a plan that was made while an earlier call may still have been under way:
// what that does in the end, a second group of the same name for example, would else be found by the next read for drift.
func (s state) readAgainOnceSettled(plan model.Plan) state {
	if !plan.Empty() && time.Now().Before(s.settledAt) && s.settledAt.Before(s.driftAt) {
		s.driftAt = s.settledAt
	}
	return s
}

// states are those of all Services.
type states struct {
	mu    sync.Mutex // guards byKey
	byKey map[types.NamespacedName]state
}

// of returns the state of a Service; one of the same name that was deleted and created anew has none.
func (s *states) of(svc *corev1.Service) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.byKey[mark.ServiceName(svc)]; ok && known.uid == svc.UID {
		return known
	}
	return state{uid: svc.UID}
}

// commit is the only writer of states. The caller holds the lock of the Service.
func (s *states) commit(svc *corev1.Service, known state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[types.NamespacedName]state{}
	}
	s.byKey[mark.ServiceName(svc)] = known
}

func (s *states) drop(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}
