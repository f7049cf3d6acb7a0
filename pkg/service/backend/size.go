package backend

// chooseAgain chooses, and returns [Choice.Size]. Nodes that were lost in an earlier choice, and have left since, are lost until others are
// there.
func (c *chooser) chooseAgain() int {
	have, gone := len(c.chosen), c.lost > 0
	c.lost = max(c.lost, min(c.Size, c.span.high)-have)
	c.choose()
	switch {
	case c.Room.Swaps, c.lost <= 0:
		return 0
	case !gone && len(c.chosen) <= have:
		return 0 // there are no others
	}
	return min(have, len(c.chosen)) + c.lost
}
