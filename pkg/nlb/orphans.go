package nlb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements driver.Engine: load balancers, server groups and security groups with a tag of the cluster, and that of a Service
// which does not exist or wants no load balancer. NLBs of Services that exist show which IDs the cluster has had.
func (e *engine) Orphans(ctx context.Context, query driver.OrphanQuery) (driver.Census, error) {
	services, clusterIDs := map[string]*corev1.Service{}, sets.New(query.ClusterIDs...).Insert(e.config.ClusterID)
	for _, svc := range query.Services {
		services[mark.DefaultName(svc.UID)] = svc
	}
	var errs []error
	owned, err := e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagOwner})
	errs = append(errs, err)
	for _, candidate := range owned {
		if id := candidate.tagValue(mark.TagCluster); id != "" && services[candidate.tagValue(mark.TagOwner)] != nil {
			clusterIDs.Insert(id)
		}
	}
	var shared []driver.Orphan
	if err == nil { // else this search would fail, too
		shared, err = e.orphansOfGroups(ctx, query, clusterIDs)
		errs = append(errs, err)
	}
	orphans := e.unownedOf(slices.DeleteFunc(owned, func(candidate tagged) bool {
		return !clusterIDs.Has(candidate.tagValue(mark.TagCluster))
	}), services)
	orphans = append(orphans, shared...)
	var outliving []driver.Orphan
	for _, kind := range []func(context.Context, alicloud.Tag) ([]tagged, error){e.taggedGroups, e.taggedAccess} {
		for _, id := range sets.List(clusterIDs) {
			found, unread := kind(ctx, alicloud.Tag{Key: mark.TagCluster, Value: id})
			if unread != nil {
				errs = append(errs, unread)
				break // the next one would fail, too
			}
			outliving = append(outliving, e.unownedOf(found, services)...)
		}
	}
	if err == nil {
		outliving, err = e.withoutUsed(ctx, outliving, orphans)
		errs = append(errs, err)
	} else {
		outliving = slices.DeleteFunc(outliving, isAccess) // nobody knows what uses them
	}
	orphans = append(orphans, outliving...)
	kept, err := e.preservedNLBs(ctx, query, clusterIDs)
	orphans, errs = append(orphans, kept...), append(errs, err)
	return driver.Census{Orphans: orphans, ClusterIDs: sets.List(clusterIDs)}, errors.Join(errs...)
}

// preservedNLBs returns the load balancers that authors of Services wanted to keep, if the query asks for them.
func (e *engine) preservedNLBs(ctx context.Context, query driver.OrphanQuery, clusterIDs sets.Set[string]) ([]driver.Orphan, error) {
	if !query.Preserved {
		return nil, nil
	}
	kept, err := e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagPreserved})
	var orphans []driver.Orphan
	for _, candidate := range kept {
		if orphan, ok := query.Kept(candidate.Orphan, candidate.tags, clusterIDs); ok {
			orphans = append(orphans, orphan)
		}
	}
	return orphans, err
}

// tagged is something in the cloud with its tags, and an orphan if no Service owns it.
type tagged struct {
	driver.Orphan
	tags []alicloud.Tag
}

// tagValue returns the value of a tag, empty without it.
func (t *tagged) tagValue(key string) string {
	for _, tag := range t.tags {
		if tag.Key == key {
			return tag.Value
		}
	}
	return ""
}

// unownedOf returns what has the tag of an owner, unless that is a Service that exists and has to do with NLBs.
func (e *engine) unownedOf(found []tagged, services map[string]*corev1.Service) (orphans []driver.Orphan) {
	for _, candidate := range found {
		owner := candidate.tagValue(mark.TagOwner)
		svc := services[owner]
		switch {
		case owner == "":
			continue
		case svc == nil:
			candidate.Reason = "no Service has the UID of the tag " + mark.TagOwner + "=" + owner
		case !Product.Wants(svc) && !Product.AskedBy(e.config, svc) && !driver.HasFinalizer(svc, Finalizer):
			candidate.Reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", mark.ServiceName(svc))
		default:
			continue
		}
		candidate.ClusterID = candidate.tagValue(mark.TagCluster)
		orphans = append(orphans, candidate.Orphan)
	}
	return orphans
}

// withoutUsed leaves out security groups that an NLB is in which is no orphan itself: one that was preserved keeps that of its source
// ranges, with all tags. Where nobody can tell, it leaves out all of them.
func (e *engine) withoutUsed(ctx context.Context, found, orphans []driver.Orphan) ([]driver.Orphan, error) {
	if !slices.ContainsFunc(found, isAccess) {
		return found, nil
	}
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{})
	if err != nil {
		return slices.DeleteFunc(found, isAccess), fmt.Errorf("read all NLBs, which may use security groups: %w", err)
	}
	used := sets.New[string]()
	for i := range balancers {
		if !slices.ContainsFunc(orphans, func(o driver.Orphan) bool { return o.ID == balancers[i].ID }) {
			used.Insert(balancers[i].SecurityGroups...)
		}
	}
	return slices.DeleteFunc(found, func(o driver.Orphan) bool { return isAccess(o) && used.Has(o.ID) }), nil
}

func isAccess(o driver.Orphan) bool { return o.Kind == driver.OrphanSecurityGroup }

func (e *engine) taggedBalancers(ctx context.Context, tag alicloud.Tag) (found []tagged, err error) {
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("read all NLBs with the tag %s: %w", tag.Key, err)
	}
	for i := range balancers {
		lb := &balancers[i]
		found = append(found, tagged{driver.Orphan{Kind: driver.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, Delete: deleteNLB(lb)}, lb.Tags})
	}
	return found, nil
}

func (e *engine) taggedGroups(ctx context.Context, tag alicloud.Tag) (found []tagged, err error) {
	groups, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("read all server groups with the tag %s: %w", tag.Key, err)
	}
	for i := range groups {
		g, command := &groups[i], "aliyun nlb DeleteServerGroup --ServerGroupId "+groups[i].ID
		found = append(found, tagged{driver.Orphan{Kind: driver.OrphanServerGroup, ID: g.ID, Name: g.Name, Delete: []string{command}}, g.Tags})
	}
	return found, nil
}

func (e *engine) taggedAccess(ctx context.Context, tag alicloud.Tag) (found []tagged, err error) {
	groups, err := e.api.DescribeSecurityGroups(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("read all security groups with the tag %s: %w", tag.Key, err)
	}
	for i := range groups {
		g, command := &groups[i], "aliyun ecs DeleteSecurityGroup --SecurityGroupId "+groups[i].ID
		found = append(found,
			tagged{driver.Orphan{Kind: driver.OrphanSecurityGroup, ID: g.ID, Name: g.Name, Delete: []string{command}}, g.Tags})
	}
	return found, nil
}

// deleteNLB returns the commands that delete an NLB: its protection goes first.
func deleteNLB(lb *alicloud.NLB) []string {
	var commands []string
	if lb.DeletionProtection {
		commands = append(commands, "aliyun nlb UpdateLoadBalancerProtection --LoadBalancerId "+lb.ID+" --DeletionProtectionEnabled false")
	}
	return append(commands, "aliyun nlb DeleteLoadBalancer --LoadBalancerId "+lb.ID)
}
