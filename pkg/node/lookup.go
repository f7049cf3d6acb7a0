package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// lookupTimeout bounds one question to ECS, the wait for its rate limit included. A pass of the stock lifecycle controller
// waits for all its answers, so a longer time would stop it for healthy nodes as well.
const lookupTimeout = 30 * time.Second

// failurePause is how long a failed call answers for all: a caller that asks for one node after the other must not make
// a call for each while the cloud is in trouble.
const failurePause = 2 * time.Second

// lookups merges questions for single keys (instance ids or addresses) into calls for up to size of them. Callers that ask
// for a key that is being asked for share the answer.
type lookups struct {
	window time.Duration
	size   int // keys per call
	// query asks for all keys in one call.
	query func(ctx context.Context, keys []string) ([]alicloud.Instance, error)
	// fill names further keys worth asking for in the room that is left in the call.
	fill func(asked sets.Set[string], room int) []string
	// answered, when set, sees every successful answer before those who wait for it.
	answered func(*lookup)

	mu      sync.Mutex // guards the fields below and the keys of the open lookup
	open    *lookup    // still takes keys; nil when none does
	running map[string]*lookup
	failed  *lookup // the last call, if it failed
}

// lookup is one call and its answer, which may be read after done is closed.
type lookup struct {
	keys      sets.Set[string] // that callers wait for
	all       []string         // that the call names
	full      chan struct{}
	done      chan struct{}
	instances []alicloud.Instance
	asked     time.Time
	err       error
}

func newLookups(window time.Duration, size int, query func(context.Context, []string) ([]alicloud.Instance, error), fill func(sets.Set[string], int) []string) *lookups {
	return &lookups{window: window, size: size, query: query, fill: fill, running: map[string]*lookup{}}
}

// ask returns the answer to a call that holds the key.
func (l *lookups) ask(ctx context.Context, key string) (*lookup, error) {
	call := l.join(ctx, key)
	select {
	case <-call.done:
		return call, call.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lookups) join(ctx context.Context, key string) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if call, ok := l.running[key]; ok {
		return call
	}
	if l.failed != nil && time.Since(l.failed.asked) < failurePause {
		return l.failed
	}
	if l.open == nil {
		l.open = &lookup{keys: sets.New[string](), full: make(chan struct{}), done: make(chan struct{})}
		// The answer belongs to all who wait for it: the first of them giving up must not end it for the others.
		go l.run(context.WithoutCancel(ctx), l.open)
	}
	call := l.open
	call.keys.Insert(key)
	l.running[key] = call
	if call.keys.Len() == l.size {
		close(call.full)
		l.open = nil
	}
	return call
}

func (l *lookups) run(ctx context.Context, call *lookup) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	timer := time.NewTimer(l.window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-call.full:
	}
	call.all = l.seal(call)
	call.asked = time.Now()
	call.instances, call.err = l.query(ctx, call.all)
	if call.err == nil && l.answered != nil {
		l.answered(call)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range call.keys {
		delete(l.running, key)
	}
	l.failed = nil
	if call.err != nil {
		l.failed = call
	}
	close(call.done)
}

// seal closes the call for further keys and returns those that it asks for.
func (l *lookups) seal(call *lookup) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == call {
		l.open = nil
	}
	keys := sets.List(call.keys)
	return append(keys, l.fill(call.keys, l.size-len(keys))...)
}
