package slb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Kinds of an [Orphan].
const (
	OrphanLoadBalancer = "load balancer"
	OrphanAccessList   = "access control list"
	OrphanListener     = "listener"
	OrphanGroup        = "vServer group"
	OrphanMember       = "member"
)

// Orphan is something of this cluster's in the cloud that no Service owns. It costs money or takes up a quota.
type Orphan struct {
	// Kind is one of the constants above.
	Kind string `json:"kind"`
	// ID is that of the cloud; a listener's is its protocol and port.
	ID string `json:"id"`
	// Name is the cloud's; a listener's is its description.
	Name string `json:"name"`
	// In is the CLB, or for a member the vServer group, that it is in.
	In string `json:"in,omitempty"`
	// Reason says why no Service owns it.
	Reason string `json:"reason"`
}

// String returns the orphan in one line.
func (o Orphan) String() string {
	text := o.Kind + " " + o.ID
	if o.Name != "" && o.Name != o.ID {
		text += " (" + o.Name + ")"
	}
	if o.In != "" {
		text += " in " + o.In
	}
	return text + ": " + o.Reason
}

// Orphans returns what the cluster's marks are on in the cloud and none of the Services owns: CLBs and access control
// lists with the cluster's tag, and on CLBs that their users made listeners, vServer groups and members. It reads only.
// What carries the mark of another cluster, or none, is not looked at.
func (r *Reconciler) Orphans(ctx context.Context, services []*corev1.Service) ([]Orphan, error) {
	census := newCensus(services, r.opts.Config.ClusterID)
	balancers, err := r.opts.API.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagOwner}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", mark.TagOwner, err)
	}
	for i := range balancers {
		census.tagged(OrphanLoadBalancer, balancers[i].ID, balancers[i].Name, balancers[i].Tags)
	}
	lists, err := r.opts.API.DescribeAccessLists(ctx, alicloud.Tag{Key: mark.TagOwner})
	if err != nil {
		return nil, fmt.Errorf("read all access control lists with the tag %s: %w", mark.TagOwner, err)
	}
	for _, list := range lists {
		census.tagged(OrphanAccessList, list.ID, list.Name, list.Tags)
	}
	shared, err := r.opts.API.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: mark.TagReused}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", mark.TagReused, err)
	}
	for i := range shared {
		if err := r.orphansOn(ctx, &shared[i], census); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(census.found, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.In, b.In), cmp.Compare(a.ID, b.ID))
	})
	return census.found, nil
}

// orphansOn looks at the marks on a CLB that its user made.
func (r *Reconciler) orphansOn(ctx context.Context, lb *alicloud.LoadBalancer, census *census) error {
	listeners, err := r.opts.API.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	for _, listener := range listeners[lb.ID] {
		census.marked(Orphan{Kind: OrphanListener, ID: listener.ListenerKey.String(), Name: listener.Description, In: lb.ID}, listener.Description, lb.ID)
	}
	groups, err := r.opts.API.DescribeVServerGroups(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the groups of %s: %w", lb.ID, err)
	}
	for _, group := range groups {
		if _, _, ok := mark.Parse(group.Name); ok {
			census.marked(Orphan{Kind: OrphanGroup, ID: group.ID, Name: group.Name, In: lb.ID}, group.Name, lb.ID)
			continue
		}
		full, err := r.opts.API.DescribeVServerGroup(ctx, group.ID)
		if alicloud.IsNotFound(err) {
			continue // went between the two reads
		}
		if err != nil {
			return fmt.Errorf("read the members of group %s: %w", group.ID, err)
		}
		for _, member := range full.Backends {
			census.marked(Orphan{Kind: OrphanMember, ID: member.String(), Name: member.Description, In: group.ID}, member.Description, lb.ID)
		}
	}
	return nil
}

// census knows the Services that may own something, and collects what none of them owns.
type census struct {
	clusterID string
	byTag     map[string]*corev1.Service
	byName    map[types.NamespacedName]*corev1.Service
	found     []Orphan
}

func newCensus(services []*corev1.Service, clusterID string) *census {
	c := &census{clusterID: clusterID, byTag: map[string]*corev1.Service{}, byName: map[types.NamespacedName]*corev1.Service{}, found: []Orphan{}}
	for _, svc := range services {
		c.byTag[mark.DefaultName(svc.UID)], c.byName[mark.ServiceName(svc)] = svc, svc
	}
	return c
}

// tagged looks at a resource that a tag gives to a Service.
func (c *census) tagged(kind, id, name string, tags []alicloud.Tag) {
	values := map[string]string{}
	for _, tag := range tags {
		values[tag.Key] = tag.Value
	}
	if values[mark.TagCluster] != c.clusterID {
		return
	}
	orphan := Orphan{Kind: kind, ID: id, Name: name}
	svc := c.byTag[values[mark.TagOwner]]
	switch {
	case svc == nil:
		orphan.Reason = "the Service with the tag " + values[mark.TagOwner] + " does not exist"
	case !WantsLoadBalancer(svc) && !hasFinalizer(svc):
		orphan.Reason = fmt.Sprintf("Service %s is not served here any more", mark.ServiceName(svc))
	default:
		return
	}
	c.found = append(c.found, orphan)
}

// marked looks at something on a CLB that its user made; mark gives it to a Service.
func (c *census) marked(orphan Orphan, text, loadBalancerID string) {
	name, clusterID, ok := mark.Parse(text)
	if !ok || clusterID != c.clusterID {
		return
	}
	svc := c.byName[name]
	switch {
	case svc == nil:
		orphan.Reason = fmt.Sprintf("Service %s does not exist", name)
	case !WantsLoadBalancer(svc) && !hasFinalizer(svc):
		orphan.Reason = fmt.Sprintf("Service %s is not served here any more", name)
	case !mayBeOn(svc, loadBalancerID):
		orphan.Reason = fmt.Sprintf("Service %s is on another CLB", name)
	default:
		return
	}
	c.found = append(c.found, orphan)
}

// mayBeOn reports whether the Service says that it is, or is to be, on the CLB.
func mayBeOn(svc *corev1.Service, loadBalancerID string) bool {
	params, _ := annotation.Parse(svc.Annotations)
	return svc.Labels[LabelLoadBalancerID] == loadBalancerID || params.Get(annotation.LoadBalancerID) == loadBalancerID
}
