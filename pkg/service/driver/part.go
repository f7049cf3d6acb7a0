package driver

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Part is one part of what an engine knows of a load balancer. A part in doubt keeps its value, and blocks only the steps that depend on
// it.
type Part[T any] struct {
	Value T
	// ReadAt is when the value was read, or written by this process; zero before that.
	ReadAt time.Time
	// Doubt is why the cloud may hold something else by now; empty means that the value can be trusted.
	Doubt string
}

// Set takes over a value that was just read or written.
func (p *Part[T]) Set(value T) { *p = Part[T]{Value: value, ReadAt: time.Now()} }

// Invalidate has the part read again before anything relies on it.
func (p *Part[T]) Invalidate(reason string) { p.Doubt = reason }

// Known reports whether there is a value, however old.
func (p *Part[T]) Known() bool { return !p.ReadAt.IsZero() }

// Trusted reports whether the value needs no reading.
func (p *Part[T]) Trusted() bool { return p.Known() && p.Doubt == "" }

// Unread is since when something cannot be read, zero while it can.
type Unread struct{ since time.Time }

// After returns it after a read that ended with err, nil for one that succeeded.
func (u Unread) After(err error) Unread {
	switch {
	case err == nil:
		return Unread{}
	case u.since.IsZero():
		return Unread{time.Now()}
	}
	return u
}

// Lasts reports whether the last read failed.
func (u Unread) Lasts() bool { return !u.since.IsZero() }

// Outlasts reports whether reads have failed for that long.
func (u Unread) Outlasts(bound time.Duration) bool { return u.Lasts() && time.Since(u.since) >= bound }

// JoinUnread returns why parts could not be read, always in the same order: the same outcome in another order would be another event.
func JoinUnread[K cmp.Ordered](unread map[K]error) error {
	var errs []error
	for _, part := range slices.Sorted(maps.Keys(unread)) {
		errs = append(errs, unread[part])
	}
	return errors.Join(errs...)
}

// IsUnread reports whether an error says nothing but that something could not be read: not that it is gone, or may be, nor that the Service
// may not use it. What is known of it stands then.
func IsUnread(err error) bool {
	_, refused := errors.AsType[*problem.ConfigError](err)
	_, waits := errors.AsType[*problem.WaitError](err)
	_, failed := errors.AsType[*alicloud.Error](err)
	return failed && !refused && !waits && !alicloud.IsNotFound(err)
}
