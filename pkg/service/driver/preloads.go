package driver

import (
	"maps"
	"sync"
	"time"
)

// preloadAge is how long what was read together is used instead of a read of its own.
const preloadAge = 5 * time.Minute

// Preloads are what was read of many load balancers together, by a key that the engine chooses. The zero value is empty; all methods may be
// called at the same time.
type Preloads[T any] struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]preloaded[T]
}

type preloaded[T any] struct {
	value T
	at    time.Time
	// outdated says that there is no value: what was read before counts no longer.
	outdated bool
}

func (p preloaded[T]) isFresh(age time.Duration) bool { return !p.outdated && time.Since(p.at) < age }

// Take returns what was read, unless it is too old, and drops it.
func (p *Preloads[T]) Take(key string) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.byKey[key]
	if !found.outdated {
		delete(p.byKey, key)
	}
	return found.value, found.isFresh(preloadAge)
}

// Has reports whether [Preloads.Take] would return something.
func (p *Preloads[T]) Has(key string) bool {
	_, ok := p.Fresh(key, preloadAge)
	return ok
}

// Fresh returns what was read no longer than a time ago, and keeps it for others.
func (p *Preloads[T]) Fresh(key string, age time.Duration) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.byKey[key]
	return found.value, found.isFresh(age)
}

// Recent returns what was read no longer than a time ago. Where several Services use the load balancer, it stays for the next one.
func (p *Preloads[T]) Recent(key string, age time.Duration, shared bool) (T, bool) {
	if shared {
		return p.Fresh(key, age)
	}
	return p.Take(key)
}

// HasRecent reports whether [Preloads.Recent] would return something.
func (p *Preloads[T]) HasRecent(key string, age time.Duration, shared bool) bool {
	if !shared {
		age = preloadAge
	}
	_, ok := p.Fresh(key, age)
	return ok
}

// Drop has what was read up to now count no longer, because something was written since. That includes what was asked for before, and is
// added later.
func (p *Preloads[T]) Drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[string]preloaded[T]{}
	}
	p.byKey[key] = preloaded[T]{at: time.Now(), outdated: true}
}

// Add adds what was asked for at a time, and drops what is too old. What was asked for later stays.
func (p *Preloads[T]) Add(found map[string]T, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[string]preloaded[T]{}
	}
	maps.DeleteFunc(p.byKey, func(_ string, old preloaded[T]) bool { return time.Since(old.at) >= preloadAge })
	for key, value := range found {
		if have, ok := p.byKey[key]; ok && (at.Before(have.at) || have.outdated && !at.After(have.at)) {
			continue
		}
		p.byKey[key] = preloaded[T]{value: value, at: at}
	}
}
