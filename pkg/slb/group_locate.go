package slb

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// groupCloud is what groups need of CLBs.
type groupCloud struct{ *engine }

var _ groups.Cloud[alicloud.LoadBalancer] = groupCloud{}

// View implements groups.Cloud.
func (groupCloud) View(lb *alicloud.LoadBalancer) groups.LoadBalancer {
	return groups.LoadBalancer{ID: lb.ID, Name: lb.Name, Tags: lb.Tags, Public: lb.AddressType == alicloud.AddressInternet}
}

// FindByTag implements groups.Cloud.
func (c groupCloud) FindByTag(ctx context.Context, tag alicloud.Tag) ([]alicloud.LoadBalancer, error) {
	return c.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &tag})
}

// Read implements groups.Cloud.
func (c groupCloud) Read(ctx context.Context, id string) (*alicloud.LoadBalancer, error) {
	return c.readCLB(ctx, id)
}

// Listeners implements groups.Cloud.
func (c groupCloud) Listeners(ctx context.Context, balancers []alicloud.LoadBalancer) (map[string][]groups.Listener, error) {
	all := map[string][]groups.Listener{}
	for chunk := range slices.Chunk(balancers, listenersPerCall) {
		read, err := c.readListeners(ctx, chunk, time.Now())
		if err != nil {
			return nil, err
		}
		for id := range read {
			for i := range read[id].listeners {
				found := &read[id].listeners[i]
				all[id] = append(all[id], listenerOf(found.ListenerKey, found.Description))
			}
		}
	}
	return all, nil
}

// Shown implements groups.Cloud.
func (c groupCloud) Shown(ctx context.Context, svc *corev1.Service, known presence.Presence) (*alicloud.LoadBalancer, error) {
	lb, _, err := c.atAddress(ctx, svc, known)
	return lb, err
}

// Claims implements groups.Cloud.
func (c groupCloud) Claims(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (has, reused bool, err error) {
	claim, err := c.claimOf(ctx, svc, lb)
	if err == nil && claim == claimGroup {
		has, err = c.marksOn(ctx, svc, lb)
		return has, false, err
	}
	return claim.holdsCLB(), claim == claimReused, err
}

// Unshareable implements groups.Cloud: each listener of a CLB has the access control of its Service.
func (groupCloud) Unshareable(
	*corev1.Service, annotation.Params, mark.Group, *corev1.Service, annotation.Params, *groups.LoadBalancer,
) error {
	return nil
}

// Params implements groups.Cloud.
func (c groupCloud) Params(svc *corev1.Service) annotation.Params {
	params, _ := c.engine.Params(svc)
	return params
}

// TagKeys implements groups.Cloud.
func (groupCloud) TagKeys(params annotation.Params) []string {
	return recordOf("", params, false, false).TagKeys
}

// Room implements groups.Cloud.
func (c groupCloud) Room(id string) (most, stay int) { return c.roomOf(id) }

// doubtGroup puts in doubt which CLB the Service is on where its group, or other Services of that, have changed.
func (e *engine) doubtGroup(of driver.Request, known observed) observed {
	if known.loadBalancer.Trusted() {
		if reason := e.shared.Doubts(of.Service, of.Params, known.Known); reason != "" {
			known.loadBalancer.Invalidate(reason)
		}
	}
	return known
}

// ownListeners leaves out the listeners of the other Services of a group: each compares its own.
func (o observed) ownListeners(of driver.Request, listeners []model.Listener) []model.Listener {
	if o.Group.IsZero() {
		return listeners
	}
	owner := mark.OwnerOf(of.Service, o.Group.ClusterID)
	return slices.DeleteFunc(slices.Clone(listeners), func(l model.Listener) bool { return owner.OwnedByOther(l.Description) })
}
