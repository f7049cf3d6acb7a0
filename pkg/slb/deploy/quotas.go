package deploy

import (
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// counted are the operations whose quotas are those of one CLB. Once a quota is used up, each further call of the kind is refused, too, and
// takes a place under the rate limit that all Services of the account share.
var counted = []model.Op{model.OpCreateGroup, model.OpCreateListener, model.OpCreateExtension, model.OpCreateAccess, model.OpAddEntries}

// shortagePause is how long no call is made after a quota of a CLB refused one, unless something was deleted from the CLB.
var shortagePause = refusal.Pause{Least: time.Minute, Longest: waits.Refused}

// shortage is an operation whose quota is used up, for what a plan is to do of its kind. A plan that is to do something else may try.
type shortage struct {
	loadBalancerID string
	op             model.Op
	targets        uint64
}

// shortageOf returns the key of an operation, and false for one that no quota of a CLB counts.
func (a *Applier) shortageOf(op model.Op) (shortage, bool) {
	key := shortage{a.model.LoadBalancer.ID, op, a.targets[op]}
	return key, key.loadBalancerID != "" && slices.Contains(counted, op)
}

// targetsOf returns what a plan is to do by operation, as one number for each.
func targetsOf(plan model.Plan) map[model.Op]uint64 {
	targets := map[model.Op]uint64{}
	for i := range plan.Steps {
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, plan.Steps[i].Target) // never fails
		targets[plan.Steps[i].Op] += sum.Sum64()
	}
	return targets
}

// shortOf returns the error with which the cloud refused an operation in this plan, or a short while ago, because of its quota.
func (a *Applier) shortOf(op model.Op) error {
	key, ok := a.shortageOf(op)
	if !ok {
		return nil
	}
	if err := a.short[op]; err != nil {
		return err
	}
	return a.memory.shortages.Err(key, time.Now())
}

// noteQuota remembers what a step has shown of the quotas of the CLB.
func (a *Applier) noteQuota(step model.Step, err error) {
	switch key, ok := a.shortageOf(step.Op); {
	case err == nil &&
		slices.Contains([]model.Op{model.OpDeleteListener, model.OpDeleteGroup, model.OpDeleteExtension, model.OpRemoveEntries}, step.Op):
		a.memory.shortages.DropFunc(func(key shortage, _ error) bool { return key.loadBalancerID == a.model.LoadBalancer.ID })
	case ok && alicloud.IsQuota(err) && !IsOverQuota(err):
		a.memory.shortages.Add(key, err, shortagePause, time.Now())
		a.short[step.Op] = err
	}
}
