// Package workers handles the keys of a work queue.
package workers

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// Run handles the keys of a queue with so many workers, each key by one of them at a time, until the context ends. It shuts the queue down
// then, and returns when the last worker has ended. A key whose handling failed is handled again, after growing pauses; handle reports the
// error itself.
func Run[K comparable](
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], number int, handle func(context.Context, K) error,
) {
	defer context.AfterFunc(ctx, queue.ShutDown)()
	var workers sync.WaitGroup
	for range number {
		workers.Go(func() {
			for next(ctx, queue, handle) {
			}
		})
	}
	workers.Wait()
}

// next handles one key. It reports false once the queue is shut down and empty.
func next[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], handle func(context.Context, K) error) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if err := handle(ctx, key); err != nil && ctx.Err() == nil {
		queue.AddRateLimited(key)
	} else {
		queue.Forget(key)
	}
	return true
}
