package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Orphans implements driver.Engine: CLBs and access control lists with a tag of the cluster, and on existing CLBs listeners, vServer
// groups and backend servers. What carries the mark of another cluster, or none, is left out.
func (e *engine) Orphans(ctx context.Context, query driver.OrphanQuery) (driver.Census, error) {
	count := driver.NewCount(Product, e.config, query, mark.Parse)
	balancers, err := e.taggedCLBs(ctx, mark.TagOwner)
	count.AddBalancers(balancers)
	errs := []error{err, e.orphansOnShared(ctx, query, count), e.orphansOfGroups(ctx, count)}
	kept, err := count.Preserved(func() ([]driver.Tagged, error) { return e.taggedCLBs(ctx, mark.TagPreserved) })
	count.Found = append(count.Found, kept...)
	errs = append(errs, err, e.orphanLists(ctx, count))
	return count.Census(), errors.Join(errs...)
}

// orphansOfGroups adds what is left on CLBs of groups.
func (e *engine) orphansOfGroups(ctx context.Context, count *driver.Count) error {
	balancers, err := e.taggedCLBs(ctx, mark.TagGroup)
	if err != nil {
		return err
	}
	return count.AddGroups(balancers, func(id string) ([]driver.Orphan, error) { return e.listenersOn(ctx, id) },
		func(id string) error { return e.orphanGroupsOn(ctx, id, count) })
}

// orphanLists adds access control lists. One that a listener uses which is no orphan itself is none: it belongs to what its Service has
// left on purpose, or to what somebody else uses. All other orphans are known.
func (e *engine) orphanLists(ctx context.Context, count *driver.Count) error {
	lists, err := e.api.DescribeAccessLists(ctx, alicloud.Tag{Key: mark.TagOwner})
	if err != nil {
		return fmt.Errorf("read all access control lists with the tag %s: %w", mark.TagOwner, err)
	}
	var all []driver.Tagged
	for _, list := range lists {
		all = append(all, driver.Tagged{Orphan: driver.Orphan{Kind: driver.OrphanAccessList, ID: list.ID, Name: list.Name,
			Delete: []string{cliCommand("DeleteAccessControlList", "AclId", list.ID)}}, Tags: list.Tags})
	}
	var errs []error
	others := count.Found
	for _, candidate := range count.Unowned(all) {
		used, err := e.usesList(ctx, candidate.ID, others)
		if errs = append(errs, err); !used && err == nil {
			count.Found = append(count.Found, candidate)
		}
	}
	return errors.Join(errs...)
}

// usesList reports whether a listener uses an access control list that is no orphan itself.
func (e *engine) usesList(ctx context.Context, id string, orphans []driver.Orphan) (bool, error) {
	list, err := e.api.DescribeAccessList(ctx, id)
	switch {
	case alicloud.IsNotFound(err):
		return true, nil // went between the two reads
	case err != nil:
		return false, fmt.Errorf("read which listeners use the access control list %s: %w", id, err)
	}
	return slices.ContainsFunc(list.UsedBy, func(user alicloud.ACLUser) bool {
		return !slices.ContainsFunc(orphans, func(o driver.Orphan) bool {
			return o.Kind == driver.OrphanLoadBalancer && o.ID == user.LoadBalancerID ||
				o.Kind == driver.OrphanListener && o.In == user.LoadBalancerID && o.ID == user.Listener.String()
		})
	}), nil
}

// orphansOnShared adds what is left of Services on existing CLBs. Where a Service has left something on purpose, it adds nothing unless the
// query asks for that.
func (e *engine) orphansOnShared(ctx context.Context, query driver.OrphanQuery, count *driver.Count) error {
	shared, err := e.taggedCLBs(ctx, mark.TagReused)
	if err != nil {
		return err
	}
	var errs []error
	for i := range shared {
		_, grouped := count.GroupOn(&shared[i]) // see orphansOfGroups
		if grouped || shared[i].Tag(mark.TagPreserved) != "" && !query.Preserved {
			continue
		}
		listeners, err := e.listenersOn(ctx, shared[i].ID)
		for _, listener := range listeners {
			count.AddMarked(listener, shared[i].ID)
		}
		if err == nil {
			err = e.orphanGroupsOn(ctx, shared[i].ID, count)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e *engine) taggedCLBs(ctx context.Context, key string) ([]driver.Tagged, error) {
	balancers, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: key}})
	if err != nil {
		return nil, fmt.Errorf("read all CLBs with the tag %s: %w", key, err)
	}
	var all []driver.Tagged
	for i := range balancers {
		lb := &balancers[i]
		all = append(all, driver.Tagged{
			Orphan: driver.Orphan{Kind: driver.OrphanLoadBalancer, ID: lb.ID, Name: lb.Name, Delete: deleteCLB(lb)}, Tags: lb.Tags,
		})
	}
	return all, nil
}

// listenersOn returns the listeners of a CLB, each of which is an orphan if its Service does not own it.
func (e *engine) listenersOn(ctx context.Context, id string) ([]driver.Orphan, error) {
	listeners, err := e.api.DescribeListeners(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the listeners of %s: %w", id, err)
	}
	var all []driver.Orphan
	for _, listener := range listeners[id] {
		all = append(all, driver.Orphan{
			Kind: driver.OrphanListener, ID: listener.ListenerKey.String(), Name: listener.Description, In: id,
			Delete: []string{cliCommand("DeleteLoadBalancerListener", "LoadBalancerId", id, "ListenerPort", strconv.Itoa(listener.Port),
				"ListenerProtocol", listener.Protocol)},
		})
	}
	return all, nil
}

// orphanGroupsOn adds the vServer groups and backend servers on a CLB that carry the mark of the cluster.
func (e *engine) orphanGroupsOn(ctx context.Context, id string, count *driver.Count) error {
	vgroups, err := e.api.DescribeVServerGroups(ctx, id)
	if err != nil {
		return fmt.Errorf("read the groups of %s: %w", id, err)
	}
	for _, group := range vgroups {
		if _, _, ok := mark.Parse(group.Name); ok {
			count.AddMarked(driver.Orphan{
				Kind: driver.OrphanGroup, ID: group.ID, Name: group.Name, In: id,
				Delete: []string{cliCommand("DeleteVServerGroup", "VServerGroupId", group.ID)},
			}, id)
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
			count.AddMarked(driver.Orphan{
				Kind: driver.OrphanBackend, ID: server.String(), Name: server.Description, In: group.ID,
				Delete: []string{removeBackend(group.ID, server)},
			}, id)
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
