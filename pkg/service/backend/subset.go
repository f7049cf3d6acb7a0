package backend

import (
	"math"
	"strconv"
)

// Subset says how many of the nodes are backends of a Service with externalTrafficPolicy Cluster: [SubsetAuto], [SubsetOff], or a number
// of nodes from 1.
type Subset int

// The values of [Subset] that are no numbers.
const (
	// SubsetAuto is all nodes while they fit the quotas of the cloud, else as many as fit. It is the default.
	SubsetAuto Subset = 0
	// SubsetOff is all nodes, also where the cloud refuses some of them.
	SubsetOff Subset = -1
)

// SubsetPattern is how a [Subset] is written.
const SubsetPattern = `auto|off|[1-9]\d{0,3}`

// maxSubset is the largest number that [SubsetPattern] matches.
const maxSubset = 9999

// ParseSubset reads a [Subset].
func ParseSubset(text string) (Subset, bool) {
	switch text {
	case "auto":
		return SubsetAuto, true
	case "off":
		return SubsetOff, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxSubset || strconv.Itoa(n) != text { // "+7" and "007" do not match [SubsetPattern]
		return SubsetAuto, false
	}
	return Subset(n), true
}

// String returns the text that [ParseSubset] reads.
func (s Subset) String() string {
	switch s {
	case SubsetAuto:
		return "auto"
	case SubsetOff:
		return "off"
	}
	return strconv.Itoa(int(s))
}

// Shares of the attachments that the quota leaves to each Service, see [spanOf]. A Service keeps the nodes that it has while their number
// is between the low and the high share, so that neither a node nor a Service more or less changes all Services.
const (
	lowShare, firstShare, highShare = 0.6, 0.75, 0.9
)

// span is how many nodes a Service may have: a new one gets first, one with fewer than low or more than high gets as many as that. One with
// fewer than least lacks nodes that others have to give up.
type span struct{ least, low, first, high int }

// exactly is the span of one number.
func exactly(n int) span { return span{n, n, n, n} }

// limited returns the span with at most so many nodes.
func (s span) limited(most int) span {
	within := func(n int) int { return min(max(n, 1), max(most, 1)) }
	return span{within(s.least), within(s.low), within(s.first), within(s.high)}
}

// wants returns how many nodes a Service with n of them is to have.
func (s span) wants(n int) int {
	if n == 0 {
		return s.first
	}
	return min(max(n, s.low), s.high)
}

// spanOf returns how many of n nodes a Service may have whose load balancer has room for most. fraction is a number of the Service between
// 0 and 1: what all Services together may have changes with every node, and each Service follows at another time.
func spanOf(subset Subset, n, most int, crowd Crowd, fraction float64) span {
	most = min(most, n)
	if subset == SubsetOff {
		return exactly(n)
	}
	share := float64(most)
	if !crowd.fits() {
		share = float64(crowd.shares()) * float64(n) / float64(stepAbove(crowd.shares(), crowd.Units))
	}
	part := func(of float64) int { return int(math.Floor(of*share + fraction)) }
	found := span{part(lowShare), part(lowShare), part(firstShare), part(highShare)}
	switch {
	case subset != SubsetAuto:
		if found = exactly(int(subset)); !crowd.fits() {
			found.least = min(part(lowShare), found.least)
		}
	case crowd.fits(): // a node may be full all the same: some have more of the Services than others
		found.low, found.first, found.high = most, most, most
	}
	return found.limited(most)
}

// stepAbove returns the first of the steps that begin with a quota, each a quarter larger than the one before, that is not below units. The
// number of Services counts in steps: with each step, and not with each Service, all Services give nodes away.
func stepAbove(quota, units int) int {
	step := quota
	for step < units {
		step += max(step/4, 1)
	}
	return step
}
