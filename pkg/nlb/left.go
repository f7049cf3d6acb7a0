package nlb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

// refreshLeft reads the load balancer of the Service's own that it has left, and finds its tags on an existing one that it has left.
func (e *engine) refreshLeft(ctx context.Context, of service.Request, found *refreshed) (err error) {
	if found.nlb.left, err = e.readLeft(ctx, of.Service, found.nlb); err != nil {
		return err
	}
	last, formerID := lastRecord(of.Applied, of.Service), found.nlb.left.formerID
	found.nlb.left.tags, err = e.leftTags(of.Service, last, found.nlb, formerID != "" && last.LoadBalancerID == formerID)
	return err
}

// readLeft reads the load balancer of the Service's own that it has left. It is forgotten once it is gone or no longer the Service's, and
// while it is being deleted nothing is to be done about it.
func (e *engine) readLeft(ctx context.Context, svc *corev1.Service, known observed) (departure, error) {
	left := known.left
	if left.trusted() {
		return left, nil
	}
	lb, err := e.api.GetNLB(ctx, left.ownID)
	owner := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)}
	switch {
	case alicloud.IsNotFound(err):
		left.own = service.Part[*alicloud.NLB]{}
		if left.missing, err = e.missing.Confirm(left.missing, true, "the NLB that the Service has left was not found"); err != nil {
			return left, nil //nolint:nilerr // one answer proves nothing; until the next one it stays in doubt
		}
	case err != nil:
		return left, fmt.Errorf("read NLB %s, which the Service has left: %w", left.ownID, err)
	case lb.Status == alicloud.NLBDeleting:
		left.own, left.missing = service.Part[*alicloud.NLB]{}, presence.Missing{}
		return left, nil
	case observe.Tagged(lb.Tags, owner) && known.id() != left.ownID:
		left.missing = presence.Missing{}
		left.own.Set(&lb)
		return left, nil
	}
	return left.withoutOwn(), nil
}

// withoutOwn forgets the load balancer of the Service's own.
func (d departure) withoutOwn() departure {
	d.ownID, d.own, d.missing = "", service.Part[*alicloud.NLB]{}, presence.Missing{}
	return d
}

// leftTags returns which tags the Service has on existing load balancers that it has left. A Record says so until they are removed: from the first
// write on it is about the other load balancer. left says that the one that it is about may be one that the Service has left.
func (e *engine) leftTags(svc *corev1.Service, last service.Record, known observed, left bool) (map[string][]string, error) {
	written := map[string][]string{}
	maps.Copy(written, last.Left)
	if id := last.LoadBalancerID; left && id != "" {
		written[id] = slices.Concat(written[id], last.TagKeys)
	}
	delete(written, known.id())
	delete(written, known.left.ownID) // it is deleted
	tags := map[string][]string{}
	for id, keys := range written {
		removable, err := e.removableTags(svc, id, keys)
		if err != nil {
			return known.left.tags, err
		}
		if len(removable) > 0 {
			tags[id] = removable
		}
	}
	return tags, nil
}

// readStrays reads the listeners of the Service on load balancers that it has left: those of its server groups, which may serve several.
func (e *engine) readStrays(ctx context.Context, svc *corev1.Service, known observed, groups []model.Group) ([]model.Listener, error) {
	ids := []string{known.left.formerID}
	for i := range groups {
		if !groups[i].Foreign {
			ids = append(ids, groups[i].LoadBalancers...)
		}
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		return id == "" || id == known.left.ownID || id == known.id() || slices.Contains(known.leaving, id)
	})
	owner := e.ownerOf(svc, known)
	var strays []model.Listener
	for chunk := range slices.Chunk(ids, alicloud.MaxNLBQuery) {
		found, err := e.api.ListNLBListeners(ctx, chunk)
		if err != nil && !alicloud.IsNotFound(err) {
			return nil, fmt.Errorf("read the listeners of load balancers that the Service has left: %w", err)
		}
		for i := range found {
			if owner.OwnsNLB(model.Text(found[i].Description)) && found[i].Status != alicloud.NLBListenerDeleting {
				strays = append(strays, model.Listener{NLBListener: found[i]})
			}
		}
	}
	return strays, nil
}
