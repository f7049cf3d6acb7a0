package slb

import (
	"context"
	"net/http"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/dryrun"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// dryCloud is the cloud as it would be after writes that a dry run has planned. It can read the cloud only, so that no write that it lacks reaches that.
type dryCloud struct {
	reader

	balancers   dryrun.Objects[alicloud.LoadBalancer]
	listeners   dryrun.Objects[placed[alicloud.Listener]]
	groups      dryrun.Objects[alicloud.VServerGroup]
	accessLists dryrun.Objects[alicloud.AccessList]

	ids dryrun.IDs
}

// placed is something on the CLB with the id.
type placed[T any] struct {
	on    string
	value T
}

// errDeleted is what the cloud says of something that was deleted.
func errDeleted(code string) error { return &alicloud.Error{Code: code, Status: http.StatusNotFound} }

func listenerID(on string, key alicloud.ListenerKey) string { return on + " " + key.String() }

// DescribeLoadBalancers implements observe.Reader.
func (d *dryCloud) DescribeLoadBalancers(ctx context.Context, query alicloud.LoadBalancerQuery) ([]alicloud.LoadBalancer, error) {
	found, err := d.reader.DescribeLoadBalancers(ctx, query)
	if err != nil {
		return nil, err
	}
	return d.balancers.List(found, func(lb *alicloud.LoadBalancer) string { return lb.ID }, func(lb *alicloud.LoadBalancer) bool {
		return isTaggedWith(lb, query.Tag) && (query.Name == "" || query.Name == lb.Name) && (query.Address == "" || query.Address == lb.Address) &&
			(len(query.IDs) == 0 || slices.Contains(query.IDs, lb.ID))
	}), nil
}

// isTaggedWith reports whether a CLB has a tag, nil for any. An empty value stands for all.
func isTaggedWith(lb *alicloud.LoadBalancer, tag *alicloud.Tag) bool {
	return tag == nil || slices.ContainsFunc(lb.Tags, func(have alicloud.Tag) bool {
		return have.Key == tag.Key && (tag.Value == "" || tag.Value == have.Value)
	})
}

// DescribeLoadBalancer implements observe.Reader.
func (d *dryCloud) DescribeLoadBalancer(ctx context.Context, id string) (alicloud.LoadBalancer, error) {
	read := func() (alicloud.LoadBalancer, error) { return d.reader.DescribeLoadBalancer(ctx, id) }
	return d.balancers.Get(id, read, errDeleted(model.CodeLoadBalancerGone))
}

// DescribeListeners implements observe.Reader.
func (d *dryCloud) DescribeListeners(ctx context.Context, loadBalancerIDs ...string) (map[string][]alicloud.Listener, error) {
	found := map[string][]alicloud.Listener{}
	if existing := d.balancers.InCloud(loadBalancerIDs); len(existing) > 0 {
		var err error
		if found, err = d.reader.DescribeListeners(ctx, existing...); err != nil {
			return nil, err
		}
	}
	for _, id := range loadBalancerIDs {
		found[id] = d.listenersOn(id, found[id])
	}
	return found, nil
}

func (d *dryCloud) listenersOn(id string, answer []alicloud.Listener) []alicloud.Listener {
	before := make([]placed[alicloud.Listener], len(answer))
	for i := range answer {
		before[i] = placed[alicloud.Listener]{id, answer[i]}
	}
	var after []alicloud.Listener
	idOf := func(l *placed[alicloud.Listener]) string { return listenerID(l.on, l.value.ListenerKey) }
	for _, listener := range d.listeners.List(before, idOf, func(l *placed[alicloud.Listener]) bool { return l.on == id }) {
		after = append(after, listener.value)
	}
	return after
}

// DescribeVServerGroups implements observe.Reader.
func (d *dryCloud) DescribeVServerGroups(ctx context.Context, loadBalancerID string) (found []alicloud.VServerGroup, err error) {
	if !d.balancers.IsCreated(loadBalancerID) {
		if found, err = d.reader.DescribeVServerGroups(ctx, loadBalancerID); err != nil {
			return nil, err
		}
	}
	return d.groups.List(found, func(g *alicloud.VServerGroup) string { return g.ID }, func(g *alicloud.VServerGroup) bool { return g.LoadBalancerID == loadBalancerID }), nil
}

// DescribeVServerGroup implements observe.Reader.
func (d *dryCloud) DescribeVServerGroup(ctx context.Context, id string) (alicloud.VServerGroup, error) {
	read := func() (alicloud.VServerGroup, error) { return d.reader.DescribeVServerGroup(ctx, id) }
	return d.groups.Get(id, read, errDeleted("ResourceNotFound.VServerGroup"))
}

// DescribeAccessLists implements observe.Reader.
func (d *dryCloud) DescribeAccessLists(ctx context.Context, tag alicloud.Tag) ([]alicloud.AccessList, error) {
	found, err := d.reader.DescribeAccessLists(ctx, tag)
	if err != nil {
		return nil, err
	}
	return d.accessLists.List(found, func(l *alicloud.AccessList) string { return l.ID }, func(l *alicloud.AccessList) bool { return slices.Contains(l.Tags, tag) }), nil
}

// DescribeAccessList implements observe.Reader.
func (d *dryCloud) DescribeAccessList(ctx context.Context, id string) (alicloud.AccessList, error) {
	read := func() (alicloud.AccessList, error) { return d.reader.DescribeAccessList(ctx, id) }
	return d.accessLists.Get(id, read, errDeleted("AclNotExist"))
}

// DescribeDomainExtensions implements observe.Reader. Those that a dry run would create are not read again.
func (d *dryCloud) DescribeDomainExtensions(ctx context.Context, loadBalancerID string, port int) ([]alicloud.DomainExtension, error) {
	key := alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolHTTPS}
	if d.balancers.IsCreated(loadBalancerID) || d.listeners.IsCreated(listenerID(loadBalancerID, key)) {
		return nil, nil
	}
	return d.reader.DescribeDomainExtensions(ctx, loadBalancerID, port)
}

// DescribeEIPs implements observe.Reader.
func (d *dryCloud) DescribeEIPs(ctx context.Context, kind, id string) ([]alicloud.EIP, error) {
	if d.balancers.IsCreated(id) {
		return nil, nil
	}
	return d.reader.DescribeEIPs(ctx, kind, id)
}
