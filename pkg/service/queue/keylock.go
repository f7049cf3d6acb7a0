package queue

import (
	"context"
	"sync"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// KeyLock gives one holder at a time per key. The zero value is ready.
type KeyLock struct {
	mu    sync.Mutex // guards locks
	locks map[string]*keyEntry
}

type keyEntry struct {
	token chan struct{} // holds one value while the key is free
	users int           // holders and waiters; the entry goes with the last
}

// Lock waits for key and returns the function that frees it, and whether it had to wait, or ctx's error. Whoever waits holds no worker, see
// [alicloud.Waiting]: the holder may be waiting for the rate limit, which takes minutes.
func (l *KeyLock) Lock(ctx context.Context, key string) (unlock func(), waited bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	entry := l.enterKey(key)
	unlock = func() {
		entry.token <- struct{}{}
		l.leaveKey(key, entry)
	}
	select {
	case <-entry.token:
		return unlock, false, nil
	default:
	}
	waiting := alicloud.WaitingOf(ctx)
	if waiting.Parked != nil {
		waiting.Parked()
	}
	if waiting.Resumed != nil {
		defer waiting.Resumed()
	}
	select {
	case <-entry.token:
		return unlock, true, nil
	case <-ctx.Done():
		l.leaveKey(key, entry)
		return nil, true, ctx.Err()
	}
}

func (l *KeyLock) enterKey(key string) *keyEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = map[string]*keyEntry{}
	}
	entry, ok := l.locks[key]
	if !ok {
		entry = &keyEntry{token: make(chan struct{}, 1)}
		entry.token <- struct{}{}
		l.locks[key] = entry
	}
	entry.users++
	return entry
}

func (l *KeyLock) leaveKey(key string, entry *keyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.users--
	if entry.users == 0 {
		delete(l.locks, key)
	}
}
