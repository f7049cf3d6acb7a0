package nlb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements driver.Engine: load balancers, server groups and security groups with a tag of the cluster, and that of a Service
// which does not exist or wants no load balancer. NLBs of Services that exist show which IDs the cluster has had.
func (e *engine) Orphans(ctx context.Context, query driver.OrphanQuery) (driver.Census, error) {
	count := driver.NewCount(Product, e.config, query, mark.ParseNLB)
	var errs []error
	owned, unread := e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagOwner})
	if errs = append(errs, unread); unread == nil { // else this search would fail, too
		count.AddBalancers(owned)
		unread = e.orphansOfGroups(ctx, count)
		errs = append(errs, unread)
	}
	var outliving []driver.Orphan
	for _, kind := range []func(context.Context, alicloud.Tag) ([]driver.Tagged, error){e.taggedGroups, e.taggedAccess} {
		for _, id := range sets.List(count.ClusterIDs) {
			found, err := kind(ctx, alicloud.Tag{Key: mark.TagCluster, Value: id})
			if err != nil {
				errs = append(errs, err)
				break // the next one would fail, too
			}
			outliving = append(outliving, count.Unowned(found)...)
		}
	}
	if unread == nil {
		var err error
		outliving, err = e.withoutUsed(ctx, outliving, count.Found)
		errs = append(errs, err)
	} else {
		outliving = slices.DeleteFunc(outliving, isAccess) // nobody knows what uses them
	}
	kept, err := count.Preserved(func() ([]driver.Tagged, error) { return e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagPreserved}) })
	count.Found = slices.Concat(count.Found, outliving, kept)
	return count.Census(), errors.Join(append(errs, err)...)
}

// orphansOfGroups adds what is left on NLBs of groups.
func (e *engine) orphansOfGroups(ctx context.Context, count *driver.Count) error {
	balancers, err := e.taggedBalancers(ctx, alicloud.Tag{Key: mark.TagGroup})
	if err != nil {
		return err
	}
	return count.AddGroups(balancers, func(id string) ([]driver.Orphan, error) {
		found, err := e.listenersOf(ctx, []string{id})
		var all []driver.Orphan
		for i := range found[id] {
			listener := &found[id][i]
			all = append(all, driver.Orphan{Kind: driver.OrphanListener, ID: listener.ID, Name: model.Text(listener.Description), In: id,
				Delete: []string{"aliyun nlb DeleteListener --ListenerId " + listener.ID}})
		}
		return all, err
	}, func(string) error { return nil })
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

func (e *engine) taggedBalancers(ctx context.Context, tag alicloud.Tag) (found []driver.Tagged, err error) {
	balancers, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("read all NLBs with the tag %s: %w", tag.Key, err)
	}
	for i := range balancers {
		lb := &balancers[i]
		found = append(found, driver.Tagged{
			Orphan: driver.Orphan{Kind: driver.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, Delete: deleteNLB(lb)}, Tags: lb.Tags,
		})
	}
	return found, nil
}

func (e *engine) taggedGroups(ctx context.Context, tag alicloud.Tag) (found []driver.Tagged, err error) {
	groups, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{Tag: &tag})
	if err != nil {
		return nil, fmt.Errorf("read all server groups with the tag %s: %w", tag.Key, err)
	}
	for i := range groups {
		g, command := &groups[i], "aliyun nlb DeleteServerGroup --ServerGroupId "+groups[i].ID
		found = append(found, driver.Tagged{
			Orphan: driver.Orphan{Kind: driver.OrphanServerGroup, ID: g.ID, Name: g.Name, Delete: []string{command}}, Tags: g.Tags,
		})
	}
	return found, nil
}

func (e *engine) taggedAccess(ctx context.Context, tag alicloud.Tag) (found []driver.Tagged, err error) {
	groups, err := e.api.DescribeSecurityGroups(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("read all security groups with the tag %s: %w", tag.Key, err)
	}
	for i := range groups {
		g, command := &groups[i], "aliyun ecs DeleteSecurityGroup --SecurityGroupId "+groups[i].ID
		found = append(found,
			driver.Tagged{Orphan: driver.Orphan{Kind: driver.OrphanSecurityGroup, ID: g.ID, Name: g.Name, Delete: []string{command}}, Tags: g.Tags})
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
