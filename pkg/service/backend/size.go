package backend

import "math"

const (
	// usedShare is how much of the quota of all nodes together the Services are given, so that each finds nodes that are not full.
	usedShare = 0.8
	// shareStep is by how much the number of load balancers grows until each gets a smaller share: with each step all Services give nodes up.
	shareStep = 1.25
	// A Service keeps its nodes while their number is between the low and the high part of its share, so that neither a node nor a load
	// balancer more or less changes all Services. With fewer than the least part it lacks nodes, which the user has to know.
	leastPart, lowPart, highPart = 0.6, 0.85, 1.15
)

// ShareOf returns how many nodes each load balancer, or server group, is to have of so many nodes, each of which can be a backend as many
// times as a quota allows. units is how many load balancers or server groups there are, others how many times the nodes are backends of
// Services whose pods decide on the nodes. It is infinite where all may have all nodes: a few nodes that have reached their quota because
// of others do not have all Services give up a part of theirs.
func ShareOf(quota, nodes, units, others int) float64 {
	if quota == 0 || nodes == 0 || units+(others+nodes/2)/nodes <= quota { //nolint:mnd // rounded
		return math.Inf(1)
	}
	return max((usedShare*float64(quota*nodes)-float64(others))/StepOf(quota, units), 1)
}

// StepOf returns the first of the steps around a quota that is not below units, see [shareStep].
func StepOf(quota, units int) float64 {
	step := float64(quota)
	for step/shareStep >= float64(units) && step > 1 {
		step /= shareStep
	}
	for step < float64(units) {
		step *= shareStep
	}
	return step
}

// size is how many nodes a Service may have: a new one gets first, and one with fewer than low gets as many as that. One with more than
// high gives nodes up while others have too few, and one with more than most in any case. One with fewer than least lacks nodes, which the
// user has to know.
type size struct{ least, low, first, high, most int }

// sizeOf returns how many of n nodes a Service may have whose load balancer has room for most. While further nodes are missing, because
// they do not work, none is given up for others: a zone that fails would cost Services nodes that work, which are not to fail as well.
func sizeOf(wanted *ChoiceInput, n, missing, most int) size {
	rounding := hashFraction(string(wanted.Service)) // the share changes with every node, and each Service follows at another time
	part := func(of float64) int { return int(math.Floor(min(of*wanted.Use.Share+rounding, float64(n)))) }
	least, high := math.Floor(leastPart*min(wanted.Use.Share, float64(most))), highPart*float64(n+missing)/float64(n)
	found := size{int(least), part(lowPart), part(1), part(high), most}
	switch number := int(wanted.Subset); {
	case number > 0 && float64(number) <= wanted.Use.Share:
		found = size{number, number, number, number, number}
	case number > 0:
		found.most = number
	case wanted.Room.Share > 0: // what is there stays
		share := wanted.Room.Share
		found.least, found.low, found.first = min(found.least, share), min(found.low, share), min(found.first, share)
	}
	within := func(n int) int { return max(min(n, found.most, most), 1) }
	return size{within(found.least), within(found.low), within(found.first), within(found.high), within(most)}
}
