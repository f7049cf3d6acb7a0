package problem

import "time"

// WaitError is an error that only means "not now": something is under way or not certain yet, and the pass is made again after the
// time. Nobody needs an event of it.
type WaitError struct {
	// Reason says what is waited for.
	Reason string
	// For is the time until the next pass.
	For time.Duration
	// Err is what came before, nil for nothing.
	Err error
}

// Error implements error.
func (w *WaitError) Error() string { return w.Reason }

// Unwrap returns what came before.
func (w *WaitError) Unwrap() error { return w.Err }
