package testkit

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Meanwhile is a transport that has something done once, just before the first call of an action. The call waits until that ends, or waits
// in turn for what the caller holds. It is for tests whose time is their own.
type Meanwhile struct {
	Next   http.RoundTripper
	Action string
	Do     func()

	began atomic.Bool
	ended chan struct{} // nil before the call
}

// patience is how long a call waits at most: less than the client waits for the answer.
const patience = 15 * time.Second

// RoundTrip implements http.RoundTripper.
func (m *Meanwhile) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("Action") == m.Action && !m.began.Swap(true) {
		m.ended = make(chan struct{})
		go func() { defer close(m.ended); m.Do() }()
		select {
		case <-m.ended:
		case <-time.After(patience):
		}
	}
	return m.Next.RoundTrip(request)
}

// End waits until it is done, and reports whether it was begun.
func (m *Meanwhile) End() bool {
	if m.ended == nil {
		return false
	}
	<-m.ended
	return true
}
