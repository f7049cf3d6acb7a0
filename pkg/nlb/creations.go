package nlb

import (
	"errors"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// failedCreations are creations of load balancers that the cloud gave up, one after the other.
type failedCreations struct {
	// last is the id of the last one, again when the next one may be tried.
	last  string
	count int
	again time.Time
}

// withOneMore adds one: another attempt follows the first one at once, the others after twice as long each.
func (f failedCreations) withOneMore(id string, now time.Time) failedCreations {
	if f.last == id {
		return f
	}
	f.last, f.count = id, f.count+1
	if f.count > 1 {
		//nolint:mnd // doubled each time, within the bounds of a shift
		f.again = now.Add(min(time.Minute<<min(f.count-2, 10), waits.CreationFailed))
	}
	return f
}

// unlessWorking returns none once there is a load balancer that works.
func (f failedCreations) unlessWorking(works bool) failedCreations {
	if works {
		return failedCreations{}
	}
	return f
}

// withoutCreation returns a plan that removes a load balancer whose creation the cloud gave up, and an error while it is too early for
// another one; nil otherwise.
func (n nlb) withoutCreation(now time.Time) (driver.Plan, error) {
	switch {
	case !n.Presence.Present() && now.Before(n.creations.again):
		return plan{nlb: n},
			&problem.WaitError{Reason: "the cloud could not create the NLB, and did not state a reason", For: n.creations.again.Sub(now)}
	case !n.Presence.Present() || n.lb.Value.Status != alicloud.NLBCreateFailed || n.Reused():
		return nil, nil
	}
	n.creations = n.creations.withOneMore(n.ID(), now)
	n.failures = append(slices.Clone(n.failures),
		errors.New("the cloud could not create the NLB, and did not state a reason; the manager deletes it, and creates it again later"))
	return plan{nlb: n, Plan: diff.Deletion(n.wholeModel())}, nil
}
