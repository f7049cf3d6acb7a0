package nlb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// get returns a load balancer by its id, nil when it does not exist or is about to go.
func (n *nlb) get(ctx context.Context, id string) (*alicloud.NLB, error) {
	if id == "" {
		return nil, nil
	}
	lb, err := n.api.GetNLB(ctx, id)
	switch {
	case alicloud.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read NLB %s: %w", id, err)
	case lb.Status == alicloud.NLBDeleting:
		return nil, nil
	}
	return &lb, nil
}

// see takes over a load balancer that an answer showed.
func (n *nlb) see(lb *alicloud.NLB, reused bool) {
	if lb.ID != n.lb.Value.ID {
		n.listeners, n.lb = service.Part[[]model.Listener]{}, service.Part[alicloud.NLB]{}
		n.groups.Invalidate("the Service is on another load balancer")
	}
	n.presence, n.reused, n.lastID, n.missingSince, n.deleted, n.maybeCreated = present, reused, lb.ID, time.Time{}, false, false
	n.lb.Set(*lb)
}

// locate finds the NLB of a Service. A Service stays on the one that it is on; then comes one of its own by tag, by label and by name,
// then the one of the annotation.
func (n *nlb) locate(ctx context.Context, svc *corev1.Service, params annotation.Params, adopted bool) (vanished string, err error) {
	lastID, asked := cmp.Or(n.lastID, svc.Labels[service.LabelLoadBalancerID]), params.Get(annotation.LoadBalancerID)
	if found, err := n.locateCurrent(ctx, asked); found || err != nil {
		return "", err
	}
	if asked == "" || adopted {
		if found, err := n.locateOwned(ctx, svc, lastID); found || err != nil {
			return "", err
		}
	}
	if asked != "" {
		lb, err := n.reusable(ctx, svc, asked)
		if err == nil {
			n.see(lb, true)
		}
		return "", err
	}
	missed := !n.deleted && (n.mayHave(svc, lastID) || adopted && n.presence == unknown)
	return n.absent(ctx, lastID, missed)
}

// locateCurrent looks after the load balancer that the Service is on. The annotation may ask for another one only while the Service is
// on one that it asked for.
func (n *nlb) locateCurrent(ctx context.Context, asked string) (found bool, err error) {
	if n.presence != present || asked != "" && asked != n.lastID && n.reused {
		return false, nil
	}
	lb, err := n.get(ctx, n.lastID)
	if lb != nil {
		n.see(lb, n.reused)
	}
	return lb != nil, err
}

// locateOwned looks for the load balancer of the Service's own.
func (n *nlb) locateOwned(ctx context.Context, svc *corev1.Service, lastID string) (found bool, err error) {
	lb, err := n.ownedBy(ctx, svc, lastID)
	if lb != nil {
		n.see(lb, false)
	}
	return lb != nil, err
}

// mayHave reports whether anything says that there was a load balancer: without that, one that is not found was never made.
func (n *nlb) mayHave(svc *corev1.Service, lastID string) bool {
	return lastID != "" || n.maybeCreated || len(svc.Status.LoadBalancer.Ingress) > 0
}

// ownedBy returns the load balancer of the Service's own: by its tag, else the one of the label, else by its name.
func (n *nlb) ownedBy(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	owner := mark.DefaultName(svc.UID)
	found, err := observe.Owned(ctx, n.api, owner)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return n.untagged(ctx, svc, lastID)
	}
	if at := slices.IndexFunc(found, func(lb alicloud.NLB) bool { return lb.ID == lastID }); at >= 0 {
		return &found[at], nil
	}
	return single(found, owner)
}

// untagged returns the load balancer of the Service's own where the search by tag shows none: the index of tags lags, and a human may
// have removed the tag.
func (n *nlb) untagged(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	owner := mark.DefaultName(svc.UID)
	lb, err := n.get(ctx, lastID)
	if err != nil {
		return nil, err
	}
	if lb != nil && (observe.Tagged(lb.Tags, alicloud.Tag{Key: mark.TagOwner, Value: owner}) || lb.Name == owner && lb.ModificationProtectionReason == mark.ProtectionReason) {
		return lb, nil
	}
	if !n.mayHave(svc, lastID) {
		return nil, nil
	}
	found, err := observe.Named(ctx, n.api, owner)
	if err != nil {
		return nil, err
	}
	return single(found, owner)
}

// single returns the only load balancer of those found, nil for none. Which of several is the Service's, only a human can tell.
func single(found []alicloud.NLB, owner string) (*alicloud.NLB, error) {
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	var ids []string
	for i := range found {
		ids = append(ids, found[i].ID)
	}
	return nil, &problem.ConfigError{Field: "tag " + mark.TagOwner, Reason: fmt.Sprintf("several NLBs have the value %s: %s; remove the tag from those that are not this Service's", owner, problem.Some(ids))}
}

// absent decides what it means that a Service has an NLB neither by id nor by tag. missed says that it should have one, or may.
func (n *nlb) absent(ctx context.Context, lastID string, missed bool) (vanished string, err error) {
	if !missed {
		n.presence, n.lastID = gone, lastID
		return "", nil
	}
	n.presence, n.lastID = unknown, lastID
	if n.missingSince.IsZero() {
		n.missingSince = time.Now()
	}
	if left := service.GoneOver - time.Since(n.missingSince); left > 0 {
		return "", &problem.WaitError{Reason: fmt.Sprintf("NLB %s is missing, which one answer does not prove", cmp.Or(lastID, "of the Service")), For: left}
	}
	if n.config.VPCID != "" { // the account of a wrong access key does not have the VPC
		if blocks, err := n.api.DescribeVPCBlocks(ctx, n.config.VPCID); err != nil || len(blocks) == 0 {
			return "", fmt.Errorf("NLB %s is missing, and so is the VPC %s: nothing is created in its place: %w", lastID, n.config.VPCID, cmp.Or(err, errNoVPC))
		}
	}
	n.presence, n.missingSince, n.maybeCreated = gone, time.Time{}, false
	n.listeners = service.Part[[]model.Listener]{}
	return lastID, nil
}

// reusable returns the load balancer that the annotation names, or why it cannot be used.
func (n *nlb) reusable(ctx context.Context, svc *corev1.Service, id string) (*alicloud.NLB, error) {
	lb, err := n.get(ctx, id)
	if err != nil {
		return nil, err
	}
	reason := "does not exist; nothing is made in its place"
	if lb != nil {
		allow, _ := lb.Tag(mark.TagAllow)
		reason = n.config.Policy.RefusesReuse(n.config.ClusterID, svc.Namespace, allow)
	}
	switch {
	case reason != "":
	case hasTag(lb, mark.TagOwner) || hasTag(lb, mark.TagCluster):
		reason = "was made by a cloud controller manager for a Service"
	}
	if reason != "" {
		return nil, &problem.ConfigError{Field: string(annotation.LoadBalancerID), Reason: "NLB " + id + " " + reason, Event: problem.ReasonLoadBalancerNotReusable}
	}
	return lb, nil
}

func hasTag(lb *alicloud.NLB, key string) bool {
	_, ok := lb.Tag(key)
	return ok
}
