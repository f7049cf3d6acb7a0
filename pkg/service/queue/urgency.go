package queue

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Urgency says which Services go first in the work queue. A change of nodes puts every Service of the cluster into the queue, and
// most of those passes find nothing to do: whoever has lost an endpoint must not wait for them.
type Urgency int

// The urgencies, the last one first.
const (
	// Usual is for what nobody waits for: nodes that join, retries, drift.
	Usual Urgency = iota
	// NodeLeft is for all Services after a node left or is no longer ready.
	NodeLeft
	// OwnEvent is for the event of one Service, or of its endpoints.
	OwnEvent
	urgencies
)

// UrgentFirst orders the work queue by urgency, and first come, first served within one.
type UrgentFirst struct {
	mu sync.Mutex // guards asked
	// asked are the urgencies of Services that are about to be added, or were added while their pass was under way.
	asked map[types.NamespacedName]Urgency

	// lanes hold the Services of each urgency; the work queue calls one method at a time. One that became more urgent stays in its
	// old lane, too, and is skipped there.
	lanes   [urgencies]workqueue.Queue[types.NamespacedName]
	waiting map[types.NamespacedName]Urgency
}

var _ workqueue.Queue[types.NamespacedName] = (*UrgentFirst)(nil)

func newUrgentFirst() *UrgentFirst {
	q := &UrgentFirst{asked: map[types.NamespacedName]Urgency{}, waiting: map[types.NamespacedName]Urgency{}}
	for i := range q.lanes {
		q.lanes[i] = workqueue.DefaultQueue[types.NamespacedName]()
	}
	return q
}

// Ask has the Service queued with at least that urgency when it is added next.
func (q *UrgentFirst) Ask(key types.NamespacedName, wanted Urgency) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wanted > q.asked[key] {
		q.asked[key] = wanted
	}
}

// takeUrgency returns the urgency that was asked for, and forgets it.
func (q *UrgentFirst) takeUrgency(key types.NamespacedName) Urgency {
	q.mu.Lock()
	defer q.mu.Unlock()
	wanted := q.asked[key]
	delete(q.asked, key)
	return wanted
}

// Push implements workqueue.Queue.
func (q *UrgentFirst) Push(key types.NamespacedName) {
	wanted := q.takeUrgency(key)
	q.waiting[key] = wanted
	q.lanes[wanted].Push(key)
}

// Touch implements workqueue.Queue: the Service is in the queue already.
func (q *UrgentFirst) Touch(key types.NamespacedName) {
	if wanted := q.takeUrgency(key); wanted > q.waiting[key] {
		q.waiting[key] = wanted
		q.lanes[wanted].Push(key)
	}
}

// Len implements workqueue.Queue.
func (q *UrgentFirst) Len() int { return len(q.waiting) }

// Pop implements workqueue.Queue. The queue is not empty.
func (q *UrgentFirst) Pop() types.NamespacedName {
	for lane := urgencies - 1; lane >= Usual; lane-- {
		for q.lanes[lane].Len() > 0 {
			key := q.lanes[lane].Pop()
			if level, ok := q.waiting[key]; ok && level == lane {
				delete(q.waiting, key)
				return key
			}
		}
	}
	return types.NamespacedName{}
}

// New returns the work queue and its order. A Service that fails again and again waits from minBackoff up to maxBackoff.
func New(name string, minBackoff, maxBackoff time.Duration) (workqueue.TypedRateLimitingInterface[types.NamespacedName], *UrgentFirst) {
	order := newUrgentFirst()
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{
		Name: name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{
			Name: name, Queue: order,
		}),
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minBackoff, maxBackoff),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: name, DelayingQueue: delaying}), order
}
