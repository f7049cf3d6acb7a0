// Package e2e holds the tests that run the built programs, as a user does: the sandbox's contract and the whole demo.
//
// With the build tag fleet there are further tests, with 50 nodes each, of the ways to lose nodes and routes; `make e2e` runs them. They
// take minutes because what they show is that nothing happens over time, and are not part of `make test`.
//
// The programs are built once, or taken from the directory that SANDBOX_BIN_DIR names. Every test has a control plane of its own; none
// needs root.
package e2e
