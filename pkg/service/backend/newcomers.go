package backend

import (
	"cmp"
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
