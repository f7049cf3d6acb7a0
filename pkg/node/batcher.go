package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// callTimeout bounds one call to ECS, the wait for its rate limit included. A pass of the stock lifecycle controller waits
// for all its answers, so a longer time would stop it for healthy nodes as well.
const callTimeout = 30 * time.Second

// failurePause is how long a failed call answers for all: a caller that asks for one node after the other must not make
// a call for each while the cloud is in trouble.
const failurePause = 2 * time.Second

// batcher merges requests for single keys (instance ids or addresses) into calls for up to size of them. Callers that ask
// for a key that is on its way share the answer.
type batcher struct {
	window time.Duration
	size   int // keys per call
	// reserve is how many of them are left to fill.
	reserve int
	// query reads all keys in one call.
	query func(ctx context.Context, keys []string) ([]alicloud.Instance, error)
	// fill names further keys worth reading in the room that is left in the call.
	fill func(asked sets.Set[string], room int) []string
	// answered, when set, receives every successful answer before those who wait for it.
	answered func(*batch)

	mu      sync.Mutex // guards the fields below and the keys of the open batch
	open    *batch     // still takes keys; nil when none does
	running map[string]*batch
	failed  *batch // the last call, if it failed
}

// batch is one call and its answer, which may be read after done is closed.
type batch struct {
	keys      sets.Set[string] // that callers wait for
	all       []string         // that the call names
	full      chan struct{}
	done      chan struct{}
	instances []alicloud.Instance
	asked     time.Time
	err       error
}

func newBatcher(window time.Duration, size int, query func(context.Context, []string) ([]alicloud.Instance, error), fill func(sets.Set[string], int) []string) *batcher {
	return &batcher{window: window, size: size, query: query, fill: fill, running: map[string]*batch{}}
}

// ask returns the answer to a call that names the key.
func (b *batcher) ask(ctx context.Context, key string) (*batch, error) {
	call := b.join(ctx, key)
	select {
	case <-call.done:
		return call, call.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *batcher) join(ctx context.Context, key string) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if call, ok := b.running[key]; ok {
		return call
	}
	if b.failed != nil && time.Since(b.failed.asked) < failurePause {
		return b.failed
	}
	if b.open == nil {
		b.open = &batch{keys: sets.New[string](), full: make(chan struct{}), done: make(chan struct{})}
		// The answer belongs to all who wait for it: the first of them giving up must not end it for the others.
		go b.run(context.WithoutCancel(ctx), b.open)
	}
	call := b.open
	call.keys.Insert(key)
	b.running[key] = call
	if call.keys.Len() == b.size-b.reserve {
		close(call.full)
		b.open = nil
	}
	return call
}

func (b *batcher) run(ctx context.Context, call *batch) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	timer := time.NewTimer(b.window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-call.full:
	}
	call.all = b.seal(call)
	call.asked = time.Now()
	call.instances, call.err = b.query(ctx, call.all)
	if call.err == nil && b.answered != nil {
		b.answered(call)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range call.keys {
		delete(b.running, key)
	}
	b.failed = nil
	if call.err != nil {
		b.failed = call
	}
	close(call.done)
}

// seal closes the call for further keys and returns those that it names.
func (b *batcher) seal(call *batch) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == call {
		b.open = nil
	}
	keys := sets.List(call.keys)
	return append(keys, b.fill(call.keys, b.size-len(keys))...)
}
