package nlb

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// preload is what was read of one NLB together with all others.
type preload struct {
	lb        alicloud.NLB
	listeners []model.Listener
}

// Preload implements service.Engine. It reads the NLBs in pages, and their listeners twenty NLBs at a time.
func (e *engine) Preload(ctx context.Context, services []*corev1.Service) error {
	wanted := map[string]bool{}
	for _, svc := range services {
		if params, _ := e.Params(svc); !params.Has(annotation.LoadBalancerID) {
			wanted[mark.DefaultName(svc.UID)] = true
		}
	}
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
	byID, err := e.preloadListeners(ctx, ids)
	if err != nil {
		return err
	}
	for owner, pre := range found {
		if pre.listeners = byID[pre.lb.ID]; twice[owner] {
			delete(found, owner)
			continue
		}
		found[owner] = pre
	}
	e.preloads.Add(found, at)
	return nil
}

// preloadListeners returns the listeners of many load balancers, by the id of the load balancer. Those that are being deleted count
// as gone.
func (e *engine) preloadListeners(ctx context.Context, ids []string) (map[string][]model.Listener, error) {
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

// takePreloaded takes over what was read together with other load balancers. Additional certificates were not.
func (n *nlb) takePreloaded(of service.Request, pre preload) {
	n.see(of.Service, &pre.lb, false)
	if !of.Params.Has(annotation.AdditionalCertIDs) && !mayHaveCertificates(of.Service) {
		n.listeners.Set(pre.listeners)
	}
}
