// Package problem holds what a user should know about a Service: problems that keep nothing else from being done, errors that only
// the user can resolve, and the reasons of the events that report them. It is pure.
package problem
