// Package failure says what an error means for the next pass over a Service: whether it only says "not now", how long to wait, and what to
// tell the user, each reason once.
package failure
