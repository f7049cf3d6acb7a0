package slb

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// location is the CLB that a Service is on.
type location struct {
	lb *alicloud.LoadBalancer
	// reused says that its user made it and names it by id.
	reused bool
}

// locate returns the CLB of a Service as it is; its lb is nil when there is none.
//
// A Service stays on the CLB that it is on, whatever its annotation says later: moving would change its address. So what
// is remembered comes first, then a CLB of our own, then the CLB that the label names, then the one of the annotation.
func (r *Reconciler) locate(ctx context.Context, svc *corev1.Service, params annotation.Params, known *memory) (location, error) {
	before := svc.Labels[LabelLoadBalancerID]
	if known.actual != nil {
		before = known.actual.LoadBalancer.ID
		lb, err := r.read(ctx, before)
		if err != nil || lb != nil {
			return location{lb, known.actual.Reused}, err
		}
	}
	found, err := r.search(ctx, svc, params.Get(annotation.LoadBalancerID), before, known)
	if err != nil || found.lb != nil {
		return found, err
	}
	if asked := params.Get(annotation.LoadBalancerID); asked != "" {
		lb, err := r.reusable(ctx, svc, params, asked)
		return location{lb, true}, err
	}
	if before != "" {
		known.lost, known.recreating = before, before
	}
	return location{}, nil
}

// search looks for a CLB that the Service was on before this program knew it.
func (r *Reconciler) search(ctx context.Context, svc *corev1.Service, asked, before string, known *memory) (location, error) {
	if asked == "" || known.marked {
		lb, err := observe.Find(ctx, r.opts.API, svc, known.marked)
		if err != nil || lb != nil {
			return location{lb, false}, err
		}
	}
	if before != "" && before != asked && known.marked {
		lb, err := r.formerlyReused(ctx, before)
		return location{lb, true}, err
	}
	return location{}, nil
}

// read returns a CLB by its id, nil when it does not exist.
func (r *Reconciler) read(ctx context.Context, id string) (*alicloud.LoadBalancer, error) {
	lb, err := r.opts.API.DescribeLoadBalancer(ctx, id)
	if alicloud.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CLB %s: %w", id, err)
	}
	return &lb, nil
}

// formerlyReused returns the CLB if it is one that a user made and we were allowed to use.
func (r *Reconciler) formerlyReused(ctx context.Context, id string) (*alicloud.LoadBalancer, error) {
	lb, err := r.read(ctx, id)
	if err != nil || lb == nil {
		return nil, err
	}
	if _, reused := lb.Tag(mark.TagReused); !reused {
		return nil, nil
	}
	return lb, nil
}

// reusable returns the CLB that the annotation names, or why it cannot be used.
func (r *Reconciler) reusable(ctx context.Context, svc *corev1.Service, params annotation.Params, id string) (*alicloud.LoadBalancer, error) {
	lb, err := r.read(ctx, id)
	if err != nil {
		return nil, err
	}
	reason := "does not exist; nothing is made in its place"
	if lb != nil {
		reason = notReusable(lb, svc, params, r.opts.Config)
	}
	if reason != "" {
		return nil, &problem.ConfigError{Field: string(annotation.LoadBalancerID), Reason: "CLB " + id + " " + reason, Event: problem.ReasonLoadBalancerNotReusable}
	}
	return lb, nil
}

// notReusable says what keeps a Service from using a CLB that its user made, "" for nothing.
func notReusable(lb *alicloud.LoadBalancer, svc *corev1.Service, params annotation.Params, config config.Config) string {
	if slices.Contains(config.APIServerAddresses, lb.Address) {
		return "is that of the API server (" + lb.Address + "): a mistake on it would cut off the whole cluster"
	}
	for _, key := range []string{mark.TagOwner, mark.TagCluster} {
		if value, ok := lb.Tag(key); ok {
			return fmt.Sprintf("was made by a controller (tag %s=%s) and serves something else", key, value)
		}
	}
	if lb.VPCID != "" && config.VPCID != "" && lb.VPCID != config.VPCID {
		return fmt.Sprintf("is in VPC %s, the nodes are in %s", lb.VPCID, config.VPCID)
	}
	if params.Has(annotation.Hostname) || params.Has(annotation.ExternalIPType) {
		return "" // the status does not show the CLB's own address
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && ingress.IP != lb.Address {
			return fmt.Sprintf("has the address %s, the Service shows %s", lb.Address, ingress.IP)
		}
	}
	return ""
}

// placement reports an annotation id that the Service cannot follow.
func placement(actual *model.Model, params annotation.Params) []problem.Problem {
	asked := params.Get(annotation.LoadBalancerID)
	if actual == nil || asked == actual.LoadBalancer.ID || asked == "" && !actual.Reused {
		return nil
	}
	if asked == "" {
		asked = "none"
	}
	return []problem.Problem{problem.Newf(problem.ReasonImmutableAttribute, "%s cannot change to %s; the Service stays on CLB %s", annotation.LoadBalancerID, asked, actual.LoadBalancer.ID)}
}

// literalClusterID is what the vendor's own controller writes where no cluster id is configured, in every such cluster.
const literalClusterID = "clusterid"

// clusterIDOn returns the cluster id that a Service's marks on a CLB carry. On a CLB of our own, whose tag names the
// Service, any mark of its name is its; on one that several clusters may share, only the configured id proves that, and
// the literal one when the Service shows that it was there before.
func clusterIDOn(actual *model.Model, svc *corev1.Service, configured string) string {
	if actual == nil {
		return configured
	}
	marks := model.ClusterIDsOn(actual, mark.ServiceName(svc))
	switch {
	case actual.Reused:
		if slices.Contains(marks, literalClusterID) && !slices.Contains(marks, configured) && wasOn(svc, &actual.LoadBalancer) {
			return literalClusterID
		}
	case len(marks) > 0:
		return marks[0]
	}
	return configured
}

// wasOn reports whether the Service shows that it was on the CLB before.
func wasOn(svc *corev1.Service, lb *alicloud.LoadBalancer) bool {
	return svc.Labels[LabelLoadBalancerID] == lb.ID || slices.ContainsFunc(svc.Status.LoadBalancer.Ingress, func(ingress corev1.LoadBalancerIngress) bool {
		return ingress.IP != "" && ingress.IP == lb.Address
	})
}
