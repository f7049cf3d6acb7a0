package testkit

import (
	"cmp"
	"slices"
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

// WrongWrite is a write of an operation that goes wrong in a way, each by its number.
type WrongWrite struct{ Operation, Way, Write int }

// SampleWrites returns which of the writes of operations, given by their actions, a test lets go wrong in which of several ways: all of them
// in each way or, with -short, one write of each operation in every third way. It is one whose action was chosen least before and is
// rarest, so that each action goes wrong somewhere.
func SampleWrites(actions [][]string, ways int) []WrongWrite {
	var all []WrongWrite
	count, chosen := map[string]int{}, map[string]int{}
	for _, action := range slices.Concat(actions...) {
		count[action]++
	}
	rarer := func(a, b string) int { return cmp.Or(chosen[a]-chosen[b], count[a]-count[b]) }
	for operation, writes := range actions {
		for way := range ways {
			switch {
			case len(writes) == 0:
			case !testing.Short():
				for write := range writes {
					all = append(all, WrongWrite{operation, way, write})
				}
			case Tried(operation+way, 3):
				rarest := slices.MinFunc(writes, rarer)
				chosen[rarest]++
				all = append(all, WrongWrite{operation, way, slices.Index(writes, rarest)})
			}
		}
	}
	return all
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
