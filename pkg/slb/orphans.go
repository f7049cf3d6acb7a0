package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements driver.Engine: CLBs and access control lists with a tag of the cluster, and on existing CLBs listeners, vServer
// groups and backend servers. What carries the mark of another cluster, or none, is left out.
func (e *engine) Orphans(ctx context.Context, query driver.OrphanQuery) (driver.Census, error) {
	census := newCensus(query, e.config.ClusterID)
	errs := []error{e.orphanCLBs(ctx, census), e.orphansOnShared(ctx, query, census), e.orphansOfGroups(ctx, query, census)}
	if query.Preserved {
		kept, err := e.taggedCLBs(ctx, mark.TagPreserved)
		for i := range kept {
			lb := &kept[i]
			if orphan, ok := query.Kept(orphanOf(lb), lb.Tags, census.clusterIDs); ok {
				census.found = append(census.found, orphan)
			}
		}
		errs = append(errs, err)
	}
	errs = append(errs, e.orphanLists(ctx, census))
	return driver.Census{Orphans: census.found, ClusterIDs: sets.List(census.clusterIDs)}, errors.Join(errs...)
}

// orphanCLBs also learns the cluster ids that count.
func (e *engine) orphanCLBs(ctx context.Context, census *census) error {
	balancers, err := e.taggedCLBs(ctx, mark.TagOwner)
	if err != nil {
		return err
	}
	for i := range balancers {
		census.learnClusterID(balancers[i].Tags)
	}
	for i := range balancers {
		lb := &balancers[i]
		census.addTagged(orphanOf(lb), lb.Tags)
	}
	return nil
}

// orphanLists adds access control lists. One that a listener uses which is no orphan itself is none: it belongs to what its Service has
// left on purpose, or to what somebody else uses. All other orphans are known.
func (e *engine) orphanLists(ctx context.Context, census *census) error {
	lists, err := e.api.DescribeAccessLists(ctx, alicloud.Tag{Key: mark.TagOwner})
	if err != nil {
		return fmt.Errorf("read all access control lists with the tag %s: %w", mark.TagOwner, err)
	}
	var errs []error
	others := len(census.found)
	for _, list := range lists {
		census.addTagged(driver.Orphan{Kind: driver.OrphanAccessList, ID: list.ID, Name: list.Name,
			Delete: []string{cliCommand("DeleteAccessControlList", "AclId", list.ID)}}, list.Tags)
	}
	candidates := slices.Clone(census.found[others:])
	census.found = census.found[:others]
	for _, candidate := range candidates {
		used, err := e.usesList(ctx, candidate.ID, census)
		if errs = append(errs, err); !used && err == nil {
			census.found = append(census.found, candidate)
		}
	}
	return errors.Join(errs...)
}

// usesList reports whether a listener uses an access control list that is no orphan itself.
func (e *engine) usesList(ctx context.Context, id string, census *census) (bool, error) {
	list, err := e.api.DescribeAccessList(ctx, id)
	switch {
	case alicloud.IsNotFound(err):
		return true, nil // went between the two reads
	case err != nil:
		return false, fmt.Errorf("read which listeners use the access control list %s: %w", id, err)
	}
	return slices.ContainsFunc(list.UsedBy, func(user alicloud.ACLUser) bool { return !census.hasFound(user) }), nil
}

// orphansOnShared adds what is left of Services on existing CLBs. Where a Service has left something on purpose, it adds nothing unless the
// query asks for that.
func (e *engine) orphansOnShared(ctx context.Context, query driver.OrphanQuery, census *census) error {
	shared, err := e.taggedCLBs(ctx, mark.TagReused)
	if err != nil {
		return err
	}
	var errs []error
	for i := range shared {
		_, grouped := census.groupOn(&shared[i]) // see orphansOfGroups
		_, preserved := shared[i].Tag(mark.TagPreserved)
		if !grouped && (!preserved || query.Preserved) {
			errs = append(errs, e.orphansOn(ctx, &shared[i], census))
		}
	}
	return errors.Join(errs...)
}

func (e *engine) taggedCLBs(ctx context.Context, key string) ([]alicloud.LoadBalancer, error) {
	balancers, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: key}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", key, err)
	}
	return balancers, nil
}

// orphansOn adds what carries the mark of the cluster on an existing CLB.
func (e *engine) orphansOn(ctx context.Context, lb *alicloud.LoadBalancer, census *census) error {
	listeners, err := e.api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	for _, listener := range listeners[lb.ID] {
		census.addMarked(driver.Orphan{
			Kind: driver.OrphanListener, ID: listener.ListenerKey.String(), Name: listener.Description, In: lb.ID,
			Delete: []string{cliCommand("DeleteLoadBalancerListener", "LoadBalancerId", lb.ID, "ListenerPort", strconv.Itoa(listener.Port),
				"ListenerProtocol", listener.Protocol)},
		}, listener.Description, lb.ID)
	}
	vgroups, err := e.api.DescribeVServerGroups(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the groups of %s: %w", lb.ID, err)
	}
	for _, group := range vgroups {
		if _, _, ok := mark.Parse(group.Name); ok {
			census.addMarked(driver.Orphan{
				Kind: driver.OrphanGroup, ID: group.ID, Name: group.Name, In: lb.ID,
				Delete: []string{cliCommand("DeleteVServerGroup", "VServerGroupId", group.ID)},
			}, group.Name, lb.ID)
			continue
		}
		full, err := e.api.DescribeVServerGroup(ctx, group.ID)
		if alicloud.IsNotFound(err) {
			continue // went between the two reads
		}
		if err != nil {
			return fmt.Errorf("read the backend servers of group %s: %w", group.ID, err)
		}
		for _, server := range full.Backends {
			census.addMarked(driver.Orphan{
				Kind: driver.OrphanBackend, ID: server.String(), Name: server.Description, In: group.ID,
				Delete: []string{removeBackend(group.ID, server)},
			}, server.Description, lb.ID)
		}
	}
	return nil
}

// cliCommand returns a command of the command line of Alibaba Cloud.
func cliCommand(action string, parameters ...string) string {
	text := "aliyun slb " + action
	for i := 0; i+1 < len(parameters); i += 2 {
		text += " --" + parameters[i] + " " + parameters[i+1]
	}
	return text
}

// orphanOf returns a CLB as an orphan, without the reason.
func orphanOf(lb *alicloud.LoadBalancer) driver.Orphan {
	return driver.Orphan{Kind: driver.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, Delete: deleteCLB(lb)}
}

// deleteCLB returns the commands that delete a CLB: its protection goes first.
func deleteCLB(lb *alicloud.LoadBalancer) []string {
	var commands []string
	if lb.DeleteProtection != alicloud.ProtectionOff {
		commands = append(commands,
			cliCommand("SetLoadBalancerDeleteProtection", "LoadBalancerId", lb.ID, "DeleteProtection", alicloud.ProtectionOff))
	}
	return append(commands, cliCommand("DeleteLoadBalancer", "LoadBalancerId", lb.ID))
}

func removeBackend(group string, server alicloud.Backend) string {
	fields := []string{fmt.Sprintf(`"ServerId":%q`, server.ServerID), fmt.Sprintf(`"Port":"%d"`, server.Port),
		fmt.Sprintf(`"Type":%q`, server.Type)}
	if server.ServerIP != "" {
		fields = append(fields, fmt.Sprintf(`"ServerIp":%q`, server.ServerIP))
	}
	return cliCommand("RemoveVServerGroupBackendServers", "VServerGroupId", group, "BackendServers", "'[{"+strings.Join(fields, ",")+"}]'")
}

// census knows the Services that may own something, and collects what none of them owns.
type census struct {
	clusterIDs sets.Set[string]
	byTag      map[string]*corev1.Service
	byName     map[types.NamespacedName]*corev1.Service
	// groups are those of CLBs that Services share, by the id of the CLB.
	groups map[string]mark.Group
	found  []driver.Orphan
}

func newCensus(query driver.OrphanQuery, clusterID string) *census {
	c := &census{
		clusterIDs: sets.New(query.ClusterIDs...).Insert(clusterID), byTag: map[string]*corev1.Service{},
		byName: map[types.NamespacedName]*corev1.Service{},
		groups: map[string]mark.Group{}, found: []driver.Orphan{},
	}
	for _, svc := range query.Services {
		c.byTag[mark.DefaultName(svc.UID)], c.byName[mark.ServiceName(svc)] = svc, svc
	}
	return c
}

func tagValues(tags []alicloud.Tag) map[string]string {
	found := map[string]string{}
	for _, tag := range tags {
		found[tag.Key] = tag.Value
	}
	return found
}

// learnClusterID notes the cluster id on the CLB of a Service that is there: the cluster had it when the CLB was made.
func (c *census) learnClusterID(tags []alicloud.Tag) {
	if on := tagValues(tags); c.byTag[on[mark.TagOwner]] != nil && on[mark.TagCluster] != "" {
		c.clusterIDs.Insert(on[mark.TagCluster])
	}
}

// addTagged adds a resource whose tag names a Service, unless the Service owns it.
func (c *census) addTagged(orphan driver.Orphan, tags []alicloud.Tag) {
	on := tagValues(tags)
	if orphan.ClusterID = on[mark.TagCluster]; !c.clusterIDs.Has(orphan.ClusterID) {
		return
	}
	svc := c.byTag[on[mark.TagOwner]]
	switch {
	case svc == nil:
		orphan.Reason = "the Service with the tag " + on[mark.TagOwner] + " does not exist"
	case !Product.Wants(svc) && !driver.HasFinalizer(svc, Finalizer):
		orphan.Reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", mark.ServiceName(svc))
	default:
		return
	}
	c.found = append(c.found, orphan)
}

// addMarked adds something on an existing CLB whose mark names a Service, unless the Service owns it.
func (c *census) addMarked(orphan driver.Orphan, text, loadBalancerID string) {
	if orphan.ClusterID, orphan.Reason = c.reasonLeft(text, loadBalancerID); orphan.Reason != "" {
		c.found = append(c.found, orphan)
	}
}

// reasonLeft returns why the Service that a mark names does not own what carries it, and the cluster. It returns no reason for a mark of
// another cluster, or none.
func (c *census) reasonLeft(text, loadBalancerID string) (clusterID, reason string) {
	name, clusterID, ok := mark.Parse(text)
	if !ok || !c.clusterIDs.Has(clusterID) {
		return clusterID, ""
	}
	svc := c.byName[name]
	switch {
	case svc == nil:
		reason = fmt.Sprintf("Service %s does not exist", name)
	case !Product.Wants(svc) && !driver.HasFinalizer(svc, Finalizer):
		reason = fmt.Sprintf("Service %s no longer wants a load balancer of this manager", name)
	case !groups.MayBeOn(svc, loadBalancerID, c.groups[loadBalancerID]):
		reason = fmt.Sprintf("Service %s is on another CLB", name)
	}
	return clusterID, reason
}

// hasFound reports whether a listener, or its CLB, is an orphan.
func (c *census) hasFound(user alicloud.ACLUser) bool {
	return slices.ContainsFunc(c.found, func(o driver.Orphan) bool {
		return o.Kind == driver.OrphanLoadBalancer && o.ID == user.LoadBalancerID ||
			o.Kind == driver.OrphanListener && o.In == user.LoadBalancerID && o.ID == user.Listener.String()
	})
}

// mayBeUsed reports whether a Service may be on the CLB that wants one, or has one.
func (c *census) mayBeUsed(loadBalancerID string) bool {
	for _, svc := range c.byName {
		if (Product.Wants(svc) || driver.HasFinalizer(svc, Finalizer)) && groups.MayBeOn(svc, loadBalancerID, c.groups[loadBalancerID]) {
			return true
		}
	}
	return false
}
