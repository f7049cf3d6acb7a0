package deploy

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// roomFor are the operations that make room for others. What is to come is there before anything goes, so that at no moment there is less;
// where both do not fit within a quota, nothing would ever come or go.
var roomFor = map[model.Op]model.Op{
	model.OpTag:             model.OpUntag,
	model.OpJoin:            model.OpLeave,
	model.OpAddRules:        model.OpRemoveRules,
	model.OpAddCertificates: model.OpRemoveCertificates,
}

// quotaOfJoined is how many security groups an NLB joins at most.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/add-an-nlb-instance-to-a-security-group.
const quotaOfJoined = 4

// makesRoom carries out the next step of the plan that makes room for one which a quota keeps out, and reports whether it did.
func (a *Applier) makesRoom(ctx context.Context, step *model.Step) bool {
	at := slices.IndexFunc(a.rest, func(s model.Step) bool { return s.Op == roomFor[step.Op] && s.Target == step.Target })
	if at < 0 {
		return false
	}
	room := a.rest[at]
	if room.Op == model.OpLeave {
		// One after the other: without any, the load balancer would be open to everybody, and the quota may be one of the group that is to be
		// joined.
		if len(a.Model.LoadBalancer.SecurityGroups) < quotaOfJoined {
			return false
		}
		a.rest[at].IDs, room.IDs = room.IDs[1:], room.IDs[:1]
	}
	if room.Op != model.OpLeave || len(a.rest[at].IDs) == 0 {
		a.rest = slices.Delete(a.rest, at, at+1)
	}
	return a.tryStep(ctx, &room)
}

// onlyRevokes reports whether a step only ends the access of clients. That waits for nothing: where rules for other clients are refused,
// who is to have none would have it for as long as that lasts.
func (a *Applier) onlyRevokes(step *model.Step) bool {
	return a.ungranted && step.Op == model.OpRemoveRules && !slices.ContainsFunc(step.Rules, func(r alicloud.SecurityRule) bool {
		return r.Drop
	})
}
