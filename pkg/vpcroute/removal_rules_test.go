package vpcroute

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

func TestRemovalCap(t *testing.T) {
	t.Parallel()
	for routes, want := range map[int]int{0: 1, 1: 1, 3: 1, 6: 2, 15: 5, 50: 5, 100: 10, 5000: 500} {
		if got := removalCap(routes); got != want {
			t.Errorf("of %d routes %d may go at once, want %d", routes, got, want)
		}
	}
}

func TestRemovals(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	surplus := func(n int) (all []route) {
		for i := range n {
			all = append(all, routeOf(cidrOf(i), fmt.Sprintf("i-%d", i)))
		}
		return all
	}
	seen, unseen := func(route) bool { return true }, func(route) bool { return false }
	none := func(string) bool { return false }
	wanted := func(n int) *desired {
		nodes, _ := nodesOf(100 + n)
		return desiredOf(nodes[100:], testConfig(), instanceOf, start)
	}
	for name, test := range map[string]struct {
		surplus, wanted int
		known           evidence
		after           time.Duration
		spent           int // routes that went a minute ago
		allowed, held   int
		waits           bool
	}{
		"one, seen":                 {surplus: 1, wanted: 9, known: evidence{former: seen, gone: none}, allowed: 1},
		"one, never seen, just now": {surplus: 1, wanted: 9, known: evidence{former: unseen, gone: none}, waits: true},
		"one, never seen, after grace": {surplus: 1, wanted: 9, known: evidence{former: unseen, gone: none}, after: waits.RouteAtStart,
			allowed: 1},
		"many": {surplus: 50, wanted: 50, known: evidence{former: seen, gone: none}, held: 50},
		"many, gone": {surplus: 50, wanted: 50, known: evidence{former: seen, gone: func(string) bool { return true }},
			allowed: 50},
		"one, and no node at all":      {surplus: 1, known: evidence{former: seen, gone: none}, held: 1},
		"one gone, and no node at all": {surplus: 1, known: evidence{former: seen, gone: func(string) bool { return true }}, held: 1},
		"two of three":                 {surplus: 2, wanted: 1, known: evidence{former: seen, gone: none}, held: 2},
		"all that the cap allows":      {surplus: 5, wanted: 45, known: evidence{former: seen, gone: none}, allowed: 5},
		"the cap is spent":             {surplus: 1, wanted: 45, known: evidence{former: seen, gone: none}, spent: 5, held: 1},
		"one gone, others not": {
			surplus: 50, wanted: 50, known: evidence{former: seen, gone: func(id string) bool { return id == "i-7" }}, allowed: 1, held: 49,
		},
	} {
		r := newRemovals()
		now := start.Add(test.after)
		for i := range test.spent {
			r.recent[routeOf(cidrOf(i+100), "i-old")] = now.Add(-time.Minute)
		}
		test.known.stands = func(route) bool { return true }
		r.decide(surplus(test.surplus), wanted(test.wanted), test.known, start.Add(-waits.RouteWithoutNode))
		got := r.decide(surplus(test.surplus), wanted(test.wanted), test.known, now)
		if len(got.allowed) != test.allowed || len(got.withheld) != test.held || got.until.IsZero() == test.waits {
			t.Errorf("%s: %d allowed, %d withheld, until %v", name, len(got.allowed), len(got.withheld), got.until)
		}
		// Withheld routes stay so while fewer and fewer are surplus.
		if test.held > 1 && len(r.decide(surplus(1), wanted(10), test.known, now.Add(waits.RoutesInTurn)).allowed) > 0 {
			t.Errorf("%s: the last of the withheld routes goes without a proof", name)
		}
	}
}

func TestAbsences(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked := sets.New("i-1")
	for name, test := range map[string]struct {
		answers []time.Duration // when the instance was missing
		shown   time.Duration   // when it was shown, 0 for never
		gone    bool
	}{
		"one answer":              {answers: []time.Duration{0}},
		"three within a minute":   {answers: []time.Duration{0, 10 * time.Second, 50 * time.Second}},
		"two over a minute":       {answers: []time.Duration{0, time.Minute}},
		"three over a minute":     {answers: []time.Duration{0, 30 * time.Second, time.Minute}, gone: true},
		"shown in between":        {answers: []time.Duration{0, 30 * time.Second, time.Minute}, shown: 40 * time.Second},
		"a long time in between":  {answers: []time.Duration{0, 30 * time.Second, 6 * time.Minute}},
		"long ago":                {answers: []time.Duration{-20 * time.Minute, -19 * time.Minute, -18 * time.Minute}},
		"again after a long time": {answers: []time.Duration{0, 6 * time.Minute, 6*time.Minute + 30*time.Second, 7 * time.Minute}, gone: true},
	} {
		a := sightings{}
		last := start
		for _, at := range test.answers {
			if test.shown > 0 && at > test.shown {
				a.note(asked, asked, true, time.Minute, start.Add(test.shown))
			}
			last = start.Add(at)
			a.note(asked, nil, true, time.Minute, last)
		}
		if last.Before(start) {
			last = start
		}
		if got := a.gone("i-1", last); got != test.gone {
			t.Errorf("%s: gone = %t, want %t", name, got, test.gone)
		}
	}
}

// TestClaims compares with looking at every pair.
func TestClaims(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		var c claims
		for range 60 {
			cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(random.IntN(4)), byte(random.IntN(256))}), 20+random.IntN(13)).Masked()
			if random.IntN(4) == 0 {
				cidr = netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("fd00::%x:0", random.IntN(8))), 100+random.IntN(29)).Masked()
			}
			want := slices.ContainsFunc(c, func(each claim) bool { return each.cidr.Overlaps(cidr) })
			found, got := c.overlapping(cidr)
			if got != want || got && !found.cidr.Overlaps(cidr) {
				t.Fatalf("seed %d: %s overlaps = %t with %s, want %t", seed, cidr, got, found.cidr, want)
			}
			if !got {
				c.add(cidr, nodeOf(0))
			}
		}
	}
}
