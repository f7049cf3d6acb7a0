package nlb

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// preload is what was read of one NLB together with all others.
type preload struct {
	lb        alicloud.NLB
	listeners []model.Listener
	// groups are the Service's own server groups, without their backend servers; nil where one that a listener uses is not among them.
	groups []alicloud.NLBGroup
}

// Preload implements driver.Engine. It reads the NLBs and the server groups in pages, and the listeners twenty NLBs at a time.
func (e *engine) Preload(ctx context.Context, services []*corev1.Service) error {
	wanted := e.ownerTagValues(services)
	all, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &alicloud.Tag{Key: mark.TagCluster, Value: e.config.ClusterID}})
	if err != nil {
		return fmt.Errorf("read all NLBs of the cluster: %w", err)
	}
	found, twice, at := map[string]preload{}, map[string]bool{}, time.Now()
	var ids []string
	for _, lb := range all {
		owner, _ := lb.Tag(mark.TagOwner)
		if !wanted[owner] || lb.Status == alicloud.NLBDeleting {
			continue
		}
		if _, again := found[owner]; again {
			twice[owner] = true // the pass over the Service reports it
		}
		found[owner] = preload{lb: lb}
		ids = append(ids, lb.ID)
	}
	byID, err := e.listenersOf(ctx, ids)
	if err != nil {
		return err
	}
	groups, err := e.preloadGroups(ctx)
	if err != nil {
		return err
	}
	for owner, pre := range found {
		if twice[owner] {
			delete(found, owner)
			continue
		}
		pre.listeners = byID[pre.lb.ID]
		if own := groups[owner]; allListed(pre.listeners, own) {
			pre.groups = own
		}
		found[owner] = pre
	}
	e.preloads.Add(found, at)
	return nil
}

// ownerTagValues returns how the tags of Services with load balancers of their own name them.
func (e *engine) ownerTagValues(services []*corev1.Service) map[string]bool {
	owners := map[string]bool{}
	for _, svc := range services {
		if params, _ := e.Params(svc); !params.Has(annotation.LoadBalancerID) {
			owners[mark.DefaultName(svc.UID)] = true
		}
	}
	return owners
}

// listenersOf returns the listeners of many load balancers, by the id of the load balancer. Those that are being deleted count
// as gone.
func (e *engine) listenersOf(ctx context.Context, ids []string) (map[string][]model.Listener, error) {
	byID := map[string][]model.Listener{}
	for chunk := range slices.Chunk(ids, alicloud.MaxNLBQuery) {
		listeners, err := e.api.ListNLBListeners(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("read the listeners of %d NLBs: %w", len(chunk), err)
		}
		for i := range listeners {
			if l := listeners[i]; l.Status != alicloud.NLBListenerDeleting {
				byID[l.LoadBalancerID] = append(byID[l.LoadBalancerID], model.Listener{NLBListener: l})
			}
		}
	}
	return byID, nil
}

// preloadGroups returns the server groups of the cluster's Services by the owner that their tag names.
func (e *engine) preloadGroups(ctx context.Context) (map[string][]alicloud.NLBGroup, error) {
	all, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &alicloud.Tag{Key: mark.TagCluster, Value: e.config.ClusterID}})
	if err != nil {
		return nil, fmt.Errorf("read all NLB server groups of the cluster: %w", err)
	}
	byOwner := map[string][]alicloud.NLBGroup{}
	for i := range all {
		owner, _ := all[i].Tag(mark.TagOwner)
		byOwner[owner] = append(byOwner[owner], all[i])
	}
	return byOwner, nil
}

// allListed reports whether the groups of all listeners are among those that a search by tag found: such a search may be incomplete.
func allListed(listeners []model.Listener, groups []alicloud.NLBGroup) bool {
	return !slices.ContainsFunc(listeners, func(l model.Listener) bool {
		return l.ServerGroupID == nil || !slices.ContainsFunc(groups, func(g alicloud.NLBGroup) bool { return g.ID == *l.ServerGroupID })
	})
}

// afterPreload returns what is known after the NLB was read together with others. Additional certificates were not.
func (o observed) afterPreload(of driver.Request, last driver.Record, found location, pre preload) observed {
	o = o.afterMove(of.Service, last, found)
	if !mayHaveCertificates(of) {
		o.listeners.Set(pre.listeners)
	}
	return o
}
