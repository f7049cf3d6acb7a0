// Package e2e holds the tests that run the built programs, as a user does: the sandbox's contract and the whole demo.
//
// The programs are built once, or taken from the directory that SANDBOX_BIN_DIR names. Every test has a control plane of its own; none
// needs root.
package e2e
