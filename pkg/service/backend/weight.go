package backend

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"

// Weight is the weight of a backend, with the mark that says whose it is.
type Weight struct {
	Value int
	Mark  string
}

// Next returns the weight and the mark that a backend which is there is to have. drains says that it gets no new connections, keeps that
// weights which others have set stay. What drains gets 0 all the same, and its mark says which weight it had. With keeps, it has that again
// when it no longer drains: nobody else raises what this program has set to 0, and a rolling update would end with a load balancer whose
// backends all have weight 0.
func (have Weight) Next(want Weight, drains, keeps bool) Weight {
	_, before, drained := mark.Undrained(have.Mark)
	drained = drained && have.Value == 0
	text, hasMark := mark.Drained(want.Mark, have.Value)
	switch {
	case drains && have.Value == 0:
		return have
	case drains:
		return Weight{0, text}
	case !keeps, have.Value == 0 && !hasMark: // nothing says who has set a weight of 0
		return want
	case drained:
		return Weight{before, want.Mark}
	}
	return Weight{have.Value, want.Mark}
}
