package slb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// presence says whether a Service has a CLB: [unknown], [present] or [gone]. A nil presence is unknown.
type presence interface{ isPresence() }

// unknown: nothing was asked yet, or what is known may be wrong. It creates and releases nothing.
type unknown struct {
	// lastID is the CLB that the Service had, if any.
	lastID string
}

// present: the Service has a CLB.
type present struct {
	// reused says that the CLB is an existing one that the Service names by id.
	reused bool
}

// gone: the Service has no CLB. Only [engine.locate] and [engine.locateForRemoval] return one, after they asked by id, where the
// Service names one, and by tag. A search by tag alone may be empty because tags are indexed late, or because somebody removed
// them.
type gone struct {
	// lastID is the CLB that the Service had, if any. It is part of the client token of the next one: with the old token the
	// cloud would answer with the old, deleted CLB.
	lastID string
	// vanished says that the Service should still have that CLB.
	vanished bool
}

func (unknown) isPresence() {}
func (present) isPresence() {}
func (gone) isPresence()    {}

// token is the client token for the CLB that takes the place of the one that is gone.
func (g gone) token(uid types.UID, lb alicloud.LoadBalancer) string {
	return deploy.Token(uid, g.lastID, lb)
}

// location is the CLB that a Service is on, if it is present.
type location struct {
	presence presence
	lb       alicloud.LoadBalancer
}

func at(lb *alicloud.LoadBalancer, reused bool) location {
	return location{present{reused: reused}, *lb}
}

// locate returns the CLB of a Service as it is.
//
// A Service stays on the CLB that it is on, whatever its annotation says later: moving would change its address. So what is
// known comes first, then a CLB of our own, then the CLB that the label names, then the one of the annotation. adopted says
// that the Service had a CLB before this program saw it.
func (e *engine) locate(ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, adopted bool) (location, error) {
	asked, lastID := params.Get(annotation.LoadBalancerID), cmp.Or(known.lastID(), svc.Labels[service.LabelLoadBalancerID])
	_, wasThere := known.presence.(present)
	if wasThere {
		lb, err := e.read(ctx, lastID)
		if err != nil {
			return location{}, err
		}
		if lb != nil {
			return at(lb, known.reused()), nil
		}
	}
	if asked == "" || adopted {
		lb, err := observe.Find(ctx, e.api, svc, adopted)
		if err != nil {
			return location{}, err
		}
		if lb != nil {
			return at(lb, false), nil
		}
	}
	if lastID != "" && lastID != asked && !wasThere {
		found, err := e.byID(ctx, svc, lastID, adopted)
		if err != nil || found.presence != nil {
			return found, err
		}
	}
	if asked != "" {
		lb, err := e.reusable(ctx, svc, params, asked)
		if err != nil {
			return location{}, err
		}
		return at(lb, true), nil
	}
	return location{presence: gone{lastID: lastID, vanished: wasThere || svc.Labels[service.LabelLoadBalancerID] != ""}}, nil
}

// locateForRemoval returns what is to be removed. What the annotations ask for counts less than what is there: they may be
// invalid, and deletion must work all the same.
func (e *engine) locateForRemoval(ctx context.Context, svc *corev1.Service, known observed) (location, error) {
	lb, err := observe.Find(ctx, e.api, svc, true)
	if err != nil {
		return location{}, err
	}
	if lb != nil {
		return at(lb, false), nil
	}
	params, _ := annotation.Parse(svc.Annotations)
	ids := []string{svc.Labels[service.LabelLoadBalancerID], params.Get(annotation.LoadBalancerID)}
	for i, id := range ids {
		if id == "" || slices.Contains(ids[:i], id) {
			continue
		}
		if found, err := e.byID(ctx, svc, id, true); err != nil || found.presence != nil {
			return found, err
		}
	}
	return location{presence: gone{lastID: known.lastID()}}, nil
}

// byID returns the CLB that the Service names, if it is the Service's: its owner tag says so, although the search by tag did not
// find it, or it is an existing CLB that the Service was on.
func (e *engine) byID(ctx context.Context, svc *corev1.Service, id string, adopted bool) (location, error) {
	lb, err := e.read(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	if owner, ok := lb.Tag(mark.TagOwner); ok && owner == mark.DefaultName(svc.UID) {
		return at(lb, false), nil
	}
	if _, reused := lb.Tag(mark.TagReused); reused && adopted {
		return at(lb, true), nil
	}
	return location{}, nil
}

// read returns a CLB by its id, nil when it does not exist.
func (e *engine) read(ctx context.Context, id string) (*alicloud.LoadBalancer, error) {
	lb, err := e.api.DescribeLoadBalancer(ctx, id)
	if alicloud.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CLB %s: %w", id, err)
	}
	return &lb, nil
}

// reusable returns the CLB that the annotation names, or why it cannot be used.
func (e *engine) reusable(ctx context.Context, svc *corev1.Service, params annotation.Params, id string) (*alicloud.LoadBalancer, error) {
	lb, err := e.read(ctx, id)
	if err != nil {
		return nil, err
	}
	reason := "does not exist; nothing is made in its place"
	if lb != nil {
		reason = notReusable(lb, svc, params, e.config)
	}
	if reason != "" {
		return nil, &problem.ConfigError{Field: string(annotation.LoadBalancerID), Reason: "CLB " + id + " " + reason, Event: problem.ReasonLoadBalancerNotReusable}
	}
	return lb, nil
}
