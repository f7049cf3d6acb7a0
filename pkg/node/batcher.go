package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// callTimeout bounds one call to ECS, the wait for its rate limit included. A pass of the stock lifecycle controller waits
	// for all its answers, so a longer time would stop it for healthy nodes as well.
	callTimeout = 30 * time.Second
	// failurePause is how long a failed call answers for all: a caller that asks for one node after the other must not make
	// a call for each while the cloud is in trouble.
	failurePause = 2 * time.Second
	// isolationCalls bounds the search for the keys that a call was refused for: enough to find one among a hundred.
	isolationCalls = 16
	// isolationPause is how long after a search none is made: a call that is refused for another reason must not cost many.
	isolationPause = time.Minute
	// refusedAge is how long a refused key is not named in any call.
	refusedAge = waits.IDRefused
)

// errRefusedID says that ECS refuses every call that names the instance id or address. Whether it does so for malformed ones is not
// documented. Both come from kubelets: one of them must not keep the instances of all others from being read.
var errRefusedID = errors.New("ECS refuses the instance id or address")

// batcher merges requests for single keys (instance ids or addresses) into calls for up to size of them. Callers that ask
// for a key that is on its way share the answer.
type batcher struct {
	window time.Duration
	size   int // keys per call
	// reserve is how many of them are left to fill.
	reserve int
	// query reads all keys in one call.
	query func(ctx context.Context, keys []string) ([]alicloud.Instance, error)
	// fill names further keys worth reading in the room that is left in the call, none of those that are refused.
	fill func(asked sets.Set[string], refused func(string) bool, room int) []string
	// answered receives every successful answer before those who wait for it.
	answered func(*batch)

	mu       sync.Mutex // guards the fields below and the keys of the open batch
	open     *batch     // still takes keys; nil when none does
	running  map[string]*batch
	failed   *batch    // the last call, if it failed
	searched time.Time // when refused keys were last searched for

	refused *cache.Expiring // keys that make ECS refuse a call
}

// batch is one call and its answer, which may be read after done is closed.
type batch struct {
	keys      sets.Set[string] // that callers wait for
	all       []string         // that the answer covers
	unread    sets.Set[string] // that it does not, because the call was refused with them
	done      chan struct{}
	instances []alicloud.Instance
	asked     time.Time
	err       error
}

// ask returns the answer to a call that names the key.
func (b *batcher) ask(ctx context.Context, key string) (*batch, error) {
	if b.isRefused(key) {
		return nil, fmt.Errorf("%w %s", errRefusedID, key)
	}
	call := b.join(ctx, key)
	select {
	case <-call.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case call.err != nil:
		return nil, call.err
	case b.isRefused(key): // that was found out by this call
		return nil, fmt.Errorf("%w %s", errRefusedID, key)
	case call.unread.Has(key):
		return nil, fmt.Errorf("ECS refused a call that named %s beside others", key)
	}
	return call, nil
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
		b.open = &batch{keys: sets.New[string](), done: make(chan struct{})}
		// The answer belongs to all who wait for it: the first of them giving up must not end it for the others.
		go b.run(context.WithoutCancel(ctx), b.open)
	}
	call := b.open
	call.keys.Insert(key)
	b.running[key] = call
	if call.keys.Len() == b.size-b.reserve {
		b.open = nil
	}
	return call
}

func (b *batcher) run(ctx context.Context, call *batch) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if b.size-b.reserve > 1 { // else the call is full
		_ = sleep.For(ctx, b.window)
	}
	b.mu.Lock()
	if b.open == call { // it takes no further keys
		b.open = nil
	}
	call.all = sets.List(call.keys)
	call.all = append(call.all, b.fill(call.keys, b.isRefused, b.size-len(call.all))...)
	b.mu.Unlock()
	call.asked = time.Now()
	call.instances, call.err = b.query(ctx, call.all)
	if alicloud.IsRefusedParameter(call.err) && len(call.all) > 1 && b.maySearch() {
		b.isolate(ctx, call)
	}
	if call.err == nil {
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

// isolate reads the halves of a call that was refused, down to the keys that it was refused for, so that these cost no other key its
// answer. Without any success the call was refused for another reason, and stays so.
func (b *batcher) isolate(ctx context.Context, call *batch) {
	var read, refused []string
	var found []alicloud.Instance
	calls := 0
	var halve func(keys []string) error
	halve = func(keys []string) error {
		for half := range slices.Chunk(keys, (len(keys)+1)/2) {
			if calls++; calls > isolationCalls {
				return nil
			}
			instances, err := b.query(ctx, half)
			switch {
			case err == nil:
				read, found = append(read, half...), append(found, instances...)
			case !alicloud.IsRefusedParameter(err):
				return err
			case len(half) == 1:
				refused = append(refused, half[0])
			default:
				if err := halve(half); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := halve(call.all); err != nil {
		call.err, read = err, nil
	}
	if len(read) == 0 {
		return
	}
	for _, key := range refused {
		b.refused.Set(key, true, refusedAge)
	}
	call.unread = sets.New(call.all...).Difference(sets.New(read...))
	call.all, call.instances, call.err = read, found, nil
}

// maySearch reports whether the last search is long enough ago, and begins one if so.
func (b *batcher) maySearch() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.searched) < isolationPause {
		return false
	}
	b.searched = time.Now()
	return true
}

// isRefused reports whether a call that names the key would be refused.
func (b *batcher) isRefused(key string) bool {
	_, refused := b.refused.Get(key)
	return refused
}
