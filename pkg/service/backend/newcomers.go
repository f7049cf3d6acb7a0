package backend

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// newcomer is a node that may become a backend.
type newcomer struct {
	*Node
	load, score float64
	light       bool
}

// newcomers returns the nodes that may become backends, the best first: by their score, and those that are backends too often at the end.
func (c *chooser) newcomers() []newcomer {
	return c.ranked(func(node *Node) bool { return !c.full(node) })
}

// ranked returns the nodes that are not chosen and may be, the best first.
func (c *chooser) ranked(may func(*Node) bool) []newcomer {
	var found []newcomer
	for _, node := range c.nodes {
		if c.has.Has(node.InstanceID) || !may(node) {
			continue
		}
		found = append(found, newcomer{node, c.load(node), c.score(node), c.load(node)+float64(c.Crowd.Each) <= c.bound})
	}
	slices.SortFunc(found, func(a, b newcomer) int {
		switch {
		case a.light != b.light && a.light:
			return -1
		case a.light != b.light:
			return 1
		case !a.light && a.load != b.load:
			return cmp.Compare(a.load, b.load)
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// score is the weighted rendezvous hash of the Service and a node: among nodes that can become backends equally often each is as likely to
// be the best as any other, and the order of two nodes depends on no third one.
func (c *chooser) score(node *Node) float64 {
	weight := 1.0
	if c.Crowd.Quota > 0 {
		weight = max(1, float64(c.Crowd.Quota)-c.load(node))
	}
	return -weight / math.Log(hashFraction(string(c.Service), node.InstanceID))
}

// hashFraction returns a number between 0 and 1, without either, that depends on texts only.
func hashFraction(texts ...string) float64 {
	sum := fnv.New64a()
	for _, text := range texts {
		_, _ = io.WriteString(sum, text+"/") // never fails
	}
	mixed := sum.Sum64()
	mixed ^= mixed >> 33 // the last bytes of a text hardly move the first bits of its sum
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	mixed *= 0xc4ceb9fe1a85ec53
	mixed ^= mixed >> 33
	return (float64(mixed>>11) + 0.5) / (1 << 53)
}
