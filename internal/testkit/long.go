package testkit

import (
	"testing"
	"time"
)

// Long marks a test that goes through hours of many Services, whose short brothers cover the same code. It is skipped with -short, as in
// make test.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes long: run it without -short, as make test-all does")
	}
}

// Sample returns which of the n cases in a row of a matrix a test tries: all of them or, with -short, a single one. Which one depends on
// the number of the row alone, so that nobody's change fails by chance, and goes round, so that neighboring rows try different ones.
func Sample(row, n int) []int {
	if testing.Short() && n > 0 {
		return []int{row % n}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Tried reports whether a test tries case i of many that are alike: all of them or, with -short, each nth.
func Tried(i, n int) bool { return !testing.Short() || i%n == 0 }

// SampleWrites returns which of the writes of an operation go wrong in a way that a test tries: all of them or, with -short, one of every
// other way. factor spreads them over the writes, so that each action is among them.
func SampleWrites(factor, operation, way, writes int) []int {
	if !Tried(operation+way, 2) {
		return nil
	}
	return Sample(factor*operation+way/2, writes)
}

// Seed returns what a test decides from that is random: the one that was asked for, else a new one or, with -short, a fixed one, so that
// nobody's change fails by chance.
func Seed(asked, fixed uint64) uint64 {
	switch {
	case asked != 0:
		return asked
	case testing.Short():
		return fixed
	}
	return uint64(time.Now().UnixNano())
}
