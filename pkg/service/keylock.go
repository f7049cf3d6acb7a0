package service

import (
	"context"
	"sync"
)

// keyLock gives one holder at a time per key. The zero value is ready.
type keyLock struct {
	mu    sync.Mutex // guards locks
	locks map[string]*keyEntry
}

type keyEntry struct {
	token chan struct{} // holds one value while the key is free
	users int           // holders and waiters; the entry goes with the last
}

// lock waits for key and returns the function that frees it, or ctx's error.
func (l *keyLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	entry := l.enter(key)
	select {
	case <-entry.token:
		return func() {
			entry.token <- struct{}{}
			l.leave(key, entry)
		}, nil
	case <-ctx.Done():
		l.leave(key, entry)
		return nil, ctx.Err()
	}
}

func (l *keyLock) enter(key string) *keyEntry {
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

func (l *keyLock) leave(key string, entry *keyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.users--
	if entry.users == 0 {
		delete(l.locks, key)
	}
}
