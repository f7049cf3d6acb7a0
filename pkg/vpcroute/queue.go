package vpcroute

import (
	"context"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
)

// task is what the controller's queue holds. One worker at most handles a task at a time.
type task string

const (
	// taskRoutes compares all nodes with all route tables.
	taskRoutes task = "routes"
	// taskChecks switches source/destination checks off.
	taskChecks task = "source/destination checks"
)

// taskQueue is a workqueue that keeps a task from running before a given time, whatever asks for it: a cloud that answers
// with errors must not get a call for each event.
type taskQueue struct {
	queue   workqueue.TypedDelayingInterface[task]
	limiter workqueue.TypedRateLimiter[task]

	mu        sync.Mutex // guards notBefore
	notBefore map[task]time.Time
}

func newTaskQueue() *taskQueue {
	return &taskQueue{
		queue:     workqueue.NewTypedDelayingQueue[task](),
		limiter:   workqueue.NewTypedItemExponentialFailureRateLimiter[task](firstBackoff, maxBackoff),
		notBefore: map[task]time.Time{},
	}
}

// add runs the task after the delay, or earlier if an earlier time was asked for. A task that is running runs again.
func (q *taskQueue) add(t task, delay time.Duration) {
	q.queue.AddAfter(t, max(delay, q.blocked(t)))
}

// blocked returns how long the task must not run yet.
func (q *taskQueue) blocked(t task) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Until(q.notBefore[t])
}

// block keeps the task from running for so long.
func (q *taskQueue) block(t task, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notBefore[t] = time.Now().Add(delay)
}

// unblock runs the task now, whatever it waits for.
func (q *taskQueue) unblock(t task) {
	q.limiter.Forget(t)
	q.block(t, 0)
	q.add(t, 0)
}

// run handles tasks with one worker for each kind of them until the context ends. A failed task is repeated with growing
// pauses.
func (q *taskQueue) run(ctx context.Context, handle func(ctx context.Context, t task) error) {
	var workers sync.WaitGroup
	for range []task{taskRoutes, taskChecks} {
		workers.Go(func() {
			for q.next(ctx, handle) {
			}
		})
	}
	<-ctx.Done()
	q.queue.ShutDown()
	workers.Wait()
}

func (q *taskQueue) next(ctx context.Context, handle func(ctx context.Context, t task) error) bool {
	t, shutdown := q.queue.Get()
	if shutdown {
		return false
	}
	defer q.queue.Done(t)
	if wait := q.blocked(t); wait > 0 {
		q.queue.AddAfter(t, wait)
		return true
	}
	err := handle(ctx, t)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "Task failed", "task", t)
		q.block(t, q.limiter.When(t))
		q.add(t, 0)
	default:
		q.limiter.Forget(t)
	}
	return true
}
