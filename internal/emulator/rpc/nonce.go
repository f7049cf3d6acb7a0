package rpc

import (
	"sync"
	"time"
)

// Nonces remembers used nonces for as long as a timestamp that could repeat them is accepted. The zero value is ready.
type Nonces struct {
	mu sync.Mutex
	// current and previous are two generations, guarded by mu. A generation lasts one full validity range (a timestamp may
	// lie Window in the past or in the future), so that dropping the older one never forgets a nonce that is still usable,
	// and memory stays bounded without a timer.
	current, previous map[string]struct{}
	started           time.Time
}

// Use records a nonce and reports whether it was new.
func (n *Nonces) Use(nonce string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil || now.Sub(n.started) > 2*Window {
		n.previous, n.current, n.started = n.current, map[string]struct{}{}, now
	}
	if _, used := n.current[nonce]; used {
		return false
	}
	if _, used := n.previous[nonce]; used {
		return false
	}
	n.current[nonce] = struct{}{}
	return true
}
