package driver

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// listingRetry is how long a list is not asked for again after that failed: each Service would have to wait for it, and then read
	// everything on its own.
	listingRetry = 30 * time.Second
	// listingWait is how long a pass waits for a list that another one reads, which may be less urgent and have to wait for the rate limit.
	listingWait = 2 * time.Second
)

// errListingBusy says that another pass still reads the list.
var errListingBusy = errors.New("the list is being read by another pass")

// Listing is a list of many things in the cloud that one pass reads for all of them. The zero value is empty; all methods may be called at
// the same time.
type Listing[T any] struct {
	mu    sync.Mutex // guards the rest
	value T
	// at is when value was asked for, or when that failed with err. It is zero before that.
	at  time.Time
	err error
	// reading is closed when the read under way has ended, and nil while there is none.
	reading chan struct{}
}

// Within returns the list as it was no longer ago than age. After an error, the caller knows nothing.
func (l *Listing[T]) Within(ctx context.Context, age time.Duration, read func(context.Context) (T, error)) (T, error) {
	reading, first := l.beginRead(age)
	if first {
		return l.readList(ctx, read)
	}
	if reading != nil {
		timeout := time.NewTimer(listingWait)
		defer timeout.Stop()
		select {
		case <-reading:
		case <-timeout.C:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFresh(age) {
		var none T
		return none, errListingBusy
	}
	return l.value, l.err
}

// beginRead returns the read under way, nil where none is needed. The caller is the first one to ask for it, and carries it out, where it
// says so.
func (l *Listing[T]) beginRead(age time.Duration) (reading chan struct{}, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading == nil && !l.isFresh(age) {
		l.reading = make(chan struct{})
		return l.reading, true
	}
	return l.reading, false
}

// readList reads the list. A pass that ends early says nothing about those after it.
func (l *Listing[T]) readList(ctx context.Context, read func(context.Context) (T, error)) (value T, err error) {
	at, err := time.Now(), errListingBusy // if read panics
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.value, l.err, l.at = value, err, at; err != nil {
			l.at = time.Now()
		}
		if ctx.Err() != nil {
			l.at = time.Time{}
		}
		close(l.reading)
		l.reading = nil
	}()
	return read(ctx)
}

// isFresh reports whether the list, or that it cannot be read, is known well enough.
func (l *Listing[T]) isFresh(age time.Duration) bool {
	if l.err != nil {
		age = listingRetry
	}
	return !l.at.IsZero() && time.Since(l.at) < age
}
