package service

import "time"

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
