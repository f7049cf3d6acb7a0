package deploy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// wanted is all that a step is to do.
func wanted(step *model.Step) string {
	if step.Op == model.OpCreateLoadBalancer {
		return fmt.Sprint(step.Op, step.LoadBalancer, step.VSwitchIDs)
	}
	return step.String()
}

// refusedLately returns why the cloud refused the same step, while it is not tried again.
func (a *Applier) refusedLately(step *model.Step) error {
	if err := a.memory.attempts.Err(a.model.LoadBalancer.ID, wanted(step)); err != nil {
		return remembered{err}
	}
	return nil
}

// noteAttempt remembers how a step ended. id is that of the CLB before it was carried out.
func (a *Applier) noteAttempt(id string, step *model.Step, err error) {
	switch {
	case err == nil:
		a.memory.attempts.Accept(id, wanted(step))
	case step.Op == model.OpCreateLoadBalancer && a.Moves:
	case refusesFor(step, err):
		a.memory.attempts.Refuse(id, wanted(step), err)
	}
}

// inUseCodes are the codes with which the cloud refuses to delete a vServer group or an access control list that something uses, or did a
// moment ago.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
var inUseCodes = []string{"RspoolVipExist", "OperationFailed.AclBindedWithVip", "AclInUsed"}

// Left returns why a group or a list is left that the cloud does not delete, nil where it is not.
func (m *Memory) Left(id string, now time.Time) error { return m.uses.Left(id, now) }

// IsInUse reports whether the cloud does not delete a group or a list because something uses it.
func IsInUse(err error) bool { return alicloud.HasCode(err, inUseCodes...) }

// ofServers are the operations of which single backend servers are remembered. A group is created without them where the cloud refuses any.
var ofServers = []model.Op{model.OpAddBackends, model.OpReplaceBackends, model.OpSetBackends}

// refusesFor reports whether the cloud refused a step for sure, and will for as long as nobody changes anything. What has a memory of its
// own is no such refusal, and neither is one of the key. A CLB that is locked refuses its deletion for as long as the bill is not paid.
func refusesFor(step *model.Step, err error) bool {
	switch {
	case !refusesListener(err), alicloud.IsThrottled(err), alicloud.IsAuth(err), refusal.IsHeld(err),
		errors.As(err, new(remembered)):
		return false
	case step.Op == model.OpCreateLoadBalancer:
		return !refusal.OfQuota(err)
	case slices.Contains(counted, step.Op) && alicloud.IsQuota(err): // see shortage
		return false
	case slices.Contains(ofServers, step.Op):
		return !refusesServer(err) && !LacksRoom(err)
	}
	return !alicloud.HasCode(err, inUseCodes...)
}

// TryAgain forgets what the cloud refused on a CLB, or of CLBs that are to be made where the id is empty: somebody has edited a Service,
// and expects to see what comes of it.
func (m *Memory) TryAgain(loadBalancerID string) {
	m.shortages.DropFunc(func(what shortage, _ error) bool { return what.loadBalancerID == loadBalancerID })
	m.attempts.TryAgain(loadBalancerID)
	m.replacements.DropFunc(func(what replacement, _ error) bool { return what.loadBalancerID == loadBalancerID })
}
