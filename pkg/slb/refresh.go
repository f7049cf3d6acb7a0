package slb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// refreshed is what [engine.refresh] found.
type refreshed struct {
	clb observed
	// record is what was applied to the CLB, nil where the CLB could not be read.
	record *Record
	// whole says that the whole CLB was read, so that the next read for drift counts from now; some says that a part was.
	whole, some bool
	// drift says that nothing but its age made anybody read the CLB.
	drift bool
	// unread are the parts that could not be read. Their last values stand; a part without one is an error of refresh.
	unread map[model.Part]error
}

// request is what [engine.refresh] needs to know of a Service.
type request struct {
	svc    *corev1.Service
	params annotation.Params
	// adopted says that the Service may have had a CLB before this program saw it.
	adopted bool
	// driftDue says that the CLB was read so long ago that somebody may have changed it.
	driftDue bool
	// record is what this process knows to be applied, nil before the first pass.
	record *Record
	charge deploy.PendingCharge
}

// refresh re-reads those parts of the CLB that are in doubt or due for drift detection.
func (e *engine) refresh(ctx context.Context, of request, known observed) (refreshed, error) {
	found := refreshed{clb: known, drift: of.driftDue && known.trusted(), unread: map[model.Part]error{}}
	if of.driftDue {
		found.clb = known.invalidate("due for drift detection")
	}
	if known.asksForGroups(of.params) {
		found.clb.groups.invalidate("an annotation names a group that was not there")
	}
	err := e.refreshLoadBalancer(ctx, of, &found)
	if err == nil {
		err = e.refreshContents(ctx, of, &found)
	}
	if alicloud.HasCode(err, model.CodeLoadBalancerGone) && known.loadBalancer.trusted() && !of.driftDue {
		return e.refresh(ctx, of, known.invalidate("the CLB is gone"))
	}
	if err != nil {
		return found, err
	}
	return found, e.refreshFewHave(ctx, of, &found)
}

// refreshLoadBalancer finds the CLB.
func (e *engine) refreshLoadBalancer(ctx context.Context, of request, found *refreshed) error {
	if found.clb.loadBalancer.trusted() {
		return nil
	}
	clb := &found.clb
	if pre, ok := e.preloads.take(mark.DefaultName(of.svc.UID)); ok && clb.model() == nil {
		model, err := pre.observe(ctx, e.api, of.svc)
		if err != nil {
			return err
		}
		of.charge.Correct(&model.LoadBalancer, time.Now())
		clb.setObserved(model)
		clb.groupsAsked, clb.extensions, clb.access, clb.addresses = of.params.Get(annotation.VGroupPort), part[struct{}]{}, part[*alicloud.AccessList]{}, part[[]string]{}
		found.whole, found.some = true, true
		return nil
	}
	location, err := e.locate(ctx, of.svc, of.params, *clb, of.adopted)
	if err != nil {
		return err
	}
	found.some, found.whole = true, true
	of.charge.Correct(&location.lb, time.Now())
	if location.lb.ID != clb.loadBalancer.value.ID {
		*clb = observed{access: clb.access}
		clb.access.invalidate("the Service is on another CLB")
	}
	clb.presence = location.presence
	clb.loadBalancer.set(location.lb)
	clb.addresses = part[[]string]{}
	return nil
}

// refreshContents reads the listeners and groups of the CLB.
func (e *engine) refreshContents(ctx context.Context, of request, found *refreshed) error {
	clb := &found.clb
	if _, ok := clb.presence.(present); !ok {
		return nil
	}
	id := clb.loadBalancer.value.ID
	found.whole = found.whole && !clb.listeners.trusted() && !clb.groups.trusted()
	if !clb.listeners.trusted() {
		listeners, err := e.api.DescribeListeners(ctx, id)
		if err != nil {
			err = fmt.Errorf("read the listeners of %s: %w", id, err)
			if !clb.listeners.known() || alicloud.HasCode(err, model.CodeLoadBalancerGone) {
				return err
			}
			found.unread[model.PartListeners] = err
		} else {
			clb.listeners.set(observe.New(clb.loadBalancer.value, listeners[id]).Listeners)
			clb.extensions, found.some = part[struct{}]{}, true
		}
	}
	if !clb.groups.trusted() {
		observed, err := observe.Groups(ctx, e.api, &model.Model{LoadBalancer: clb.loadBalancer.value, Reused: clb.reused()}, mark.ServiceName(of.svc))
		if err != nil {
			if !clb.groups.known() || alicloud.HasCode(err, model.CodeLoadBalancerGone) {
				return err
			}
			found.unread[model.PartGroups] = err
		} else {
			clb.groups.set(observed.Groups)
			clb.groupsAsked, found.some = of.params.Get(annotation.VGroupPort), true
		}
	}
	return nil
}

// refreshFewHave reads what few Services have, and only where there may be any.
func (e *engine) refreshFewHave(ctx context.Context, of request, found *refreshed) error {
	clb := &found.clb
	record := loadRecord(of.record, of.svc, clb.model())
	if !clb.extensions.trusted() && mayHaveExtensions(of.params, clb.model(), record) {
		observed := clb.model()
		if err := observe.Extensions(ctx, e.api, observed, mark.ServiceName(of.svc)); err != nil {
			if len(record.legacyDomains) > 0 {
				return err // which domains were recorded is not known without the extensions
			}
			found.unread[model.PartExtensions] = err
		} else {
			clb.listeners.value = observed.Listeners
			clb.extensions.set(struct{}{})
		}
	}
	record = record.resolveDomains(clb.model(), of.params)
	found.record = &record
	list, err := e.refreshAccess(ctx, of.svc, of.params, *clb, record)
	if err != nil {
		found.unread[model.PartAccess] = err
	}
	clb.access = list
	return nil
}

// refreshAccess reads the list of the source ranges where there may be one.
func (e *engine) refreshAccess(ctx context.Context, svc *corev1.Service, params annotation.Params, clb observed, record Record) (part[*alicloud.AccessList], error) {
	access := clb.access
	if access.trusted() {
		return access, nil
	}
	if !mayHaveAccessList(svc, params, clb.model(), record) {
		return part[*alicloud.AccessList]{value: access.value}, nil
	}
	list, err := observe.AccessList(ctx, e.api, svc)
	if err == nil {
		access.set(list)
	}
	return access, err
}
