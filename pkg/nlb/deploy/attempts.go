package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// wanted is all that a step is to do.
func wanted(step *model.Step) string {
	switch step.Op {
	case model.OpAddServers, model.OpRemoveServers, model.OpUpdateServers:
		return fmt.Sprint(step.Op, step.Target, step.Servers)
	case model.OpCreateLoadBalancer:
		return fmt.Sprintf("%s %+v", step.Op, step.LoadBalancer)
	}
	return step.String()
}

// attempt carries a step out, unless the cloud refused the same step lately.
func (a *Applier) attempt(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	id, what := a.Model.LoadBalancer.ID, wanted(step)
	if err := a.Memory.attempts.Err(id, what); err != nil {
		return "", known{err}
	}
	job, err := a.doStep(ctx, step)
	switch {
	case err == nil:
		a.Memory.attempts.Accept(id, what)
	case refusesFor(step, err):
		a.Memory.attempts.Refuse(id, what, err)
	}
	return job, err
}

// refusesFor reports whether the cloud refused a step for sure, and will for as long as nobody changes anything. Single servers and load
// balancers have memories of their own. A refusal of the key, and one that was remembered, is none.
func refusesFor(step *model.Step, err error) bool {
	own := step.Op == model.OpCreateLoadBalancer || errors.As(err, new(*leftOutError))
	return !own && isRefusal(err) && !alicloud.IsAuth(err) && !errors.As(err, new(known))
}

// Left returns why a server group or security group is left that the cloud does not delete, nil where it is not.
func (m *Memory) Left(id string) error { return m.uses.Left(id, time.Now()) }

// TryAgain forgets what the cloud refused on a load balancer: somebody has edited a Service, and expects to see what comes of it.
func (m *Memory) TryAgain(loadBalancerID string) { m.attempts.TryAgain(loadBalancerID) }
