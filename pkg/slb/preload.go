package slb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

const (
	// listenersPerCall is how many CLBs one DescribeLoadBalancerListeners call takes.
	listenersPerCall = 10
	// preloadCalls run at a time: reads have a generous quota, and a new leader should be ready within seconds.
	preloadCalls = 8
)

// preload is what was read of one CLB together with all others.
type preload struct {
	lb        alicloud.LoadBalancer
	listeners []alicloud.Listener
}

// Preload implements driver.Engine. It reads the CLBs in pages, and their listeners ten CLBs at a time.
func (e *engine) Preload(ctx context.Context, services []*corev1.Service) error {
	wanted := map[string]bool{}
	for _, svc := range services {
		wanted[mark.DefaultName(svc.UID)] = true
	}
	all, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagOwner}})
	if err != nil {
		return fmt.Errorf("read all CLBs with the tag %s: %w", mark.TagOwner, err)
	}
	found, at := map[string]preload{}, time.Now()
	ambiguous := map[string]bool{}
	for _, lb := range all {
		owner, _ := lb.Tag(mark.TagOwner)
		if _, twice := found[owner]; twice {
			ambiguous[owner] = true
		}
		if wanted[owner] {
			found[owner] = preload{lb: lb}
		}
	}
	for owner := range ambiguous {
		delete(found, owner) // the pass over the Service reports it
	}
	if err := e.preloadListeners(ctx, found); err != nil {
		return err
	}
	e.preloads.Add(found, at)
	return nil
}

func (e *engine) preloadListeners(ctx context.Context, found map[string]preload) error {
	var ids []string
	for _, pre := range found {
		ids = append(ids, pre.lb.ID)
	}
	slices.Sort(ids)
	var mu sync.Mutex // guards byID
	byID := map[string][]alicloud.Listener{}
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(preloadCalls)
	for chunk := range slices.Chunk(ids, listenersPerCall) {
		calls.Go(func() error {
			part, err := e.api.DescribeListeners(ctx, chunk...)
			if err != nil {
				return fmt.Errorf("read the listeners of %d CLBs: %w", len(chunk), err)
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(byID, part)
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	for owner, pre := range found {
		pre.listeners = byID[pre.lb.ID]
		found[owner] = pre
	}
	return nil
}

// observeGroups completes the model with the groups. Where every port has its listener, the groups are those that the listeners
// name, and a list of all groups is not needed: a group that nothing uses any more is found by the first detection of drift.
func (p preload) observeGroups(ctx context.Context, api observe.Reader, svc *corev1.Service) (*model.Model, error) {
	observed := observe.New(p.lb, p.listeners)
	ids, complete := groupsInUse(observed, svc)
	if !complete {
		return observe.Groups(ctx, api, observed, mark.ServiceName(svc))
	}
	for _, id := range ids {
		group, err := api.DescribeVServerGroup(ctx, id)
		if alicloud.IsNotFound(err) {
			observed.Groups = nil
			return observe.Groups(ctx, api, observed, mark.ServiceName(svc))
		}
		if err != nil {
			return nil, fmt.Errorf("read the backend servers of group %s: %w", id, err)
		}
		if marked, _, ok := mark.Parse(group.Name); ok && marked == mark.ServiceName(svc) {
			observed.Groups = append(observed.Groups, model.Group{ID: group.ID, Name: group.Name, Backends: group.Backends})
		}
	}
	return observed, nil
}

// groupsInUse returns the groups of the Service's listeners, and whether there is one listener per port.
func groupsInUse(model *model.Model, svc *corev1.Service) (ids []string, complete bool) {
	listeners := 0
	for _, listener := range model.Listeners {
		marked, _, ok := mark.Parse(listener.Description)
		if !ok || marked != mark.ServiceName(svc) || listener.GroupID == "" {
			continue
		}
		listeners++
		if !slices.Contains(ids, listener.GroupID) {
			ids = append(ids, listener.GroupID)
		}
	}
	return ids, listeners == len(svc.Spec.Ports)
}
