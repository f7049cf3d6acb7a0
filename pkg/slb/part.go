package slb

import "time"

// part is one part of what is known of a CLB. A part in doubt keeps its value, and blocks only the steps that depend on it.
type part[T any] struct {
	value T
	// readAt is when the value was read, or written by this process; zero before that.
	readAt time.Time
	// doubt is why the cloud may hold something else by now; empty means that the value can be trusted.
	doubt string
}

// set takes over a value that was just read or written.
func (p *part[T]) set(value T) { *p = part[T]{value: value, readAt: time.Now()} }

// invalidate has the part read again before anything relies on it.
func (p *part[T]) invalidate(reason string) { p.doubt = reason }

// known reports whether there is a value, however old.
func (p *part[T]) known() bool { return !p.readAt.IsZero() }

// trusted reports whether the value needs no reading.
func (p *part[T]) trusted() bool { return p.known() && p.doubt == "" }
