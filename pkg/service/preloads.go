package service

import (
	"maps"
	"sync"
	"time"
)

// preloadAge is how long what was read together is used instead of a read of its own.
const preloadAge = 5 * time.Minute

// Preloads are what was read of many load balancers together and no Service has asked for yet, by a key that the engine chooses. The
// zero value is empty; all methods may be called at the same time.
type Preloads[T any] struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]preloaded[T]
}

type preloaded[T any] struct {
	value T
	at    time.Time
}

func (p preloaded[T]) fresh() bool { return time.Since(p.at) < preloadAge }

// Take returns what was read, unless it is too old, and drops it.
func (p *Preloads[T]) Take(key string) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byKey[key]
	delete(p.byKey, key)
	return found.value, ok && found.fresh()
}

// Has reports whether [Preloads.Take] would return something.
func (p *Preloads[T]) Has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byKey[key]
	return ok && found.fresh()
}

// Add adds what was read at a time, and drops what is too old.
func (p *Preloads[T]) Add(found map[string]T, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[string]preloaded[T]{}
	}
	maps.DeleteFunc(p.byKey, func(_ string, old preloaded[T]) bool { return !old.fresh() })
	for key, value := range found {
		p.byKey[key] = preloaded[T]{value, at}
	}
}
