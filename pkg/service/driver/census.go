package driver

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Census is what one product has of the cluster in the cloud.
type Census struct {
	// Orphans are what no Service owns.
	Orphans []Orphan
	// ClusterIDs are those on load balancers of Services that exist, recognized by their UID: the cluster has or had these IDs.
	ClusterIDs []string
}

// Tagged is something in the cloud with its tags, and an orphan if no Service owns it.
type Tagged struct {
	Orphan

	Tags []alicloud.Tag
}

// Tag returns the value of a tag, empty without it.
func (t *Tagged) Tag(key string) string {
	for _, tag := range t.Tags {
		if tag.Key == key {
			return tag.Value
		}
	}
	return ""
}

// Count takes a [Census].
type Count struct {
	// ClusterIDs are those that count: what carries another one is another cluster's.
	ClusterIDs sets.Set[string]
	// Found are the orphans.
	Found []Orphan

	product Product
	config  config.Config
	query   OrphanQuery
	parse   func(text string) (service types.NamespacedName, clusterID string, ok bool)
	byTag   map[string]*corev1.Service
	byName  map[types.NamespacedName]*corev1.Service
	groups  map[string]mark.Group // by the ids of the load balancers that Services share
}

// NewCount begins a census of a product. parse takes the marks on its load balancers apart.
func NewCount(
	product Product, config config.Config, query OrphanQuery, parse func(text string) (types.NamespacedName, string, bool),
) *Count {
	c := &Count{
		ClusterIDs: sets.New(query.ClusterIDs...).Insert(config.ClusterID), Found: []Orphan{}, product: product, config: config, query: query,
		parse: parse, byTag: map[string]*corev1.Service{}, byName: map[types.NamespacedName]*corev1.Service{}, groups: map[string]mark.Group{},
	}
	for _, svc := range query.Services {
		c.byTag[mark.DefaultName(svc.UID)], c.byName[mark.ServiceName(svc)] = svc, svc
	}
	return c
}

// Census returns what was counted.
func (c *Count) Census() Census {
	return Census{Orphans: c.Found, ClusterIDs: sets.List(c.ClusterIDs)}
}

// AddBalancers adds the load balancers whose owner tags name no Service. Those of Services that are there show which ids the cluster had
// when they were made.
func (c *Count) AddBalancers(balancers []Tagged) {
	for i := range balancers {
		if lb := &balancers[i]; c.byTag[lb.Tag(mark.TagOwner)] != nil && lb.Tag(mark.TagCluster) != "" {
			c.ClusterIDs.Insert(lb.Tag(mark.TagCluster))
		}
	}
	c.Found = append(c.Found, c.Unowned(balancers)...)
}

// Unowned returns what has the owner tag of a Service that is not there, or no longer has to do with the product.
func (c *Count) Unowned(all []Tagged) []Orphan {
	var orphans []Orphan
	for i := range all {
		orphan, owner := all[i].Orphan, all[i].Tag(mark.TagOwner)
		if orphan.ClusterID = all[i].Tag(mark.TagCluster); owner == "" || !c.ClusterIDs.Has(orphan.ClusterID) {
			continue
		}
		svc := c.byTag[owner]
		switch {
		case svc == nil:
			orphan.Reason = "no Service has the UID of the tag " + mark.TagOwner + "=" + owner
		case !c.mayHave(svc):
			orphan.Reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", mark.ServiceName(svc))
		default:
			continue
		}
		orphans = append(orphans, orphan)
	}
	return orphans
}

// mayHave reports whether a Service is to have something of the product, or has it.
func (c *Count) mayHave(svc *corev1.Service) bool {
	return c.product.Wants(svc) || c.product.AskedBy(c.config, svc) || HasFinalizer(svc, c.product.Finalizer)
}

// AddMarked adds something on a load balancer whose name is the mark of a Service that does not own it.
func (c *Count) AddMarked(orphan Orphan, loadBalancerID string) {
	if orphan.ClusterID, orphan.Reason = c.reasonLeft(orphan.Name, loadBalancerID); orphan.Reason != "" {
		c.Found = append(c.Found, orphan)
	}
}

// reasonLeft returns why the Service that a mark names does not own what carries it, and the cluster. It returns no reason for a mark of
// another cluster, or none.
func (c *Count) reasonLeft(text, loadBalancerID string) (clusterID, reason string) {
	name, clusterID, ok := c.parse(text)
	if !ok || !c.ClusterIDs.Has(clusterID) {
		return clusterID, ""
	}
	svc := c.byName[name]
	switch {
	case svc == nil:
		reason = fmt.Sprintf("Service %s does not exist", name)
	case !c.mayHave(svc):
		reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", name)
	case !mayBeOn(svc, loadBalancerID, c.groups[loadBalancerID]):
		reason = fmt.Sprintf("Service %s is on another %s", name, c.product.Name)
	}
	return clusterID, reason
}

// GroupOn returns the group of the cluster that shares a load balancer.
func (c *Count) GroupOn(lb *Tagged) (mark.Group, bool) {
	group, ok := mark.ParseGroup(lb.Tag(mark.TagGroup))
	return group, ok && c.ClusterIDs.Has(group.ClusterID)
}

// AddGroups adds load balancers of groups without Services, and what is left of Services on the others. One on which anybody else has a
// listener is none: the manager keeps it when the last Service of the group goes, and the command that deletes it would end the traffic of
// that listener. Where a Service has left something on purpose, it adds nothing unless the query asks for that: nobody can tell that apart
// from what else is left. listeners reads those of a load balancer, and others adds what else carries marks there.
func (c *Count) AddGroups(balancers []Tagged, listeners func(id string) ([]Orphan, error), others func(id string) error) error {
	var errs []error
	for i := range balancers {
		lb := &balancers[i]
		group, ok := c.GroupOn(lb)
		if !ok || lb.Tag(mark.TagPreserved) != "" && !c.query.Preserved {
			continue
		}
		c.groups[lb.ID] = group
		found, err := listeners(lb.ID)
		switch {
		case err != nil:
			errs = append(errs, err)
		case c.isUsed(lb.ID, found):
			for _, listener := range found {
				c.AddMarked(listener, lb.ID)
			}
			errs = append(errs, others(lb.ID))
		default:
			orphan := lb.Orphan
			orphan.ClusterID, orphan.Reason = group.ClusterID, fmt.Sprintf("no Service is in load balancer group %s", group)
			c.Found = append(c.Found, orphan)
		}
	}
	return errors.Join(errs...)
}

// isUsed reports whether a Service may be on a load balancer, or anybody else has one of its listeners.
func (c *Count) isUsed(loadBalancerID string, listeners []Orphan) bool {
	for _, svc := range c.byName {
		if c.mayHave(svc) && mayBeOn(svc, loadBalancerID, c.groups[loadBalancerID]) {
			return true
		}
	}
	return slices.ContainsFunc(listeners, func(l Orphan) bool {
		_, reason := c.reasonLeft(l.Name, loadBalancerID)
		return reason == ""
	})
}

// mayBeOn reports whether a Service says that it is, or is to be, on a load balancer, or that it is about to leave it. shared is the group
// of that, zero for none.
func mayBeOn(svc *corev1.Service, id string, shared mark.Group) bool {
	if Names(svc, id) {
		return true
	}
	record, _ := RecordOn(svc)
	if slices.Contains(record.Leaving, id) || !shared.IsZero() && slices.Contains(record.Leaving, shared.Mark()) {
		return true
	}
	namespace, name, grouped := annotation.GroupOf(svc)
	return !shared.IsZero() && grouped && shared.Is(mark.Group{ClusterID: shared.ClusterID, Namespace: namespace, Name: name})
}

// Preserved returns the load balancers that authors of Services wanted to keep, if the query asks for them and no Service uses them. One of
// a group is none, and none that existed before: others may use it.
func (c *Count) Preserved(search func() ([]Tagged, error)) ([]Orphan, error) {
	if !c.query.Preserved {
		return nil, nil
	}
	all, err := search()
	var orphans []Orphan
	for i := range all {
		lb := &all[i]
		clusterID, name := mark.ParsePreserved(lb.Tag(mark.TagPreserved))
		isOthers := slices.ContainsFunc(lb.Tags, func(tag alicloud.Tag) bool {
			return tag.Key == mark.TagOwner || tag.Key == mark.TagGroup || tag.Key == mark.TagReused
		})
		used := slices.ContainsFunc(c.query.Services, func(svc *corev1.Service) bool { return Names(svc, lb.ID) })
		if isOthers || used || !c.ClusterIDs.Has(clusterID) {
			continue
		}
		orphan := lb.Orphan
		orphan.ClusterID, orphan.Reason = clusterID, fmt.Sprintf("Service %s left it with the annotation %s", name, annotation.PreserveOnDelete)
		orphans = append(orphans, orphan)
	}
	return orphans, err
}
