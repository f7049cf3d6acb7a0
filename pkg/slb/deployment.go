package slb

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// deployment is what came of a plan.
type deployment struct {
	// model is the CLB afterwards, nil where the plan was empty.
	model *model.Model
	// writes counts the calls that changed something.
	writes int
	// progress says that the cloud accepted one of them.
	progress bool
	// refused are annotations that the cloud refused to apply.
	refused []string
	// doubts are the parts that a failed call may or may not have changed, with the reason.
	doubts map[model.Part]string
	// lost is the id of a CLB that a call said does not exist.
	lost string
	// refusedServer says that a call failed because of a server in it, interrupted that the plan was given up for a newer one.
	refusedServer, interrupted bool
	// charge is the internet charge type that was asked for, if any was.
	charge deploy.PendingCharge
	err    error
}

// deploy carries out a plan. drift says that the plan only repairs what somebody changed in the cloud, which can wait.
func (e *engine) deploy(ctx context.Context, svc *corev1.Service, clb observed, plan model.Plan, drift bool) deployment {
	if plan.Empty() {
		return deployment{}
	}
	observed := clb.model()
	if observed == nil {
		observed = &model.Model{Access: clb.access.value}
	}
	absent, _ := clb.presence.(gone)
	observePlan(plan)
	applier := deploy.New(e.api, &e.answers, observed, func(lb alicloud.LoadBalancer) string { return absent.token(svc.UID, lb) })
	applier.Drift = drift
	err := applier.Run(ctx, plan)
	return deployment{
		model: observed, writes: applier.Writes, progress: applier.Progress, refused: applier.RefusedAnnotations(), doubts: applier.Doubts, lost: applier.Lost,
		refusedServer: applier.RefusedServer, interrupted: applier.Interrupted, charge: applier.Charge, err: err,
	}
}
