package vpcroute

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// reporter emits the events of passes.
type reporter struct {
	events *events.Recorder
}

// state emits a Warning about something that concerns many nodes, on one of them, and takes back what was said once there is none.
func (r reporter) state(about events.Subject, node *corev1.Node, reason, warning string) {
	switch {
	case warning == "":
		r.events.Resolve(about, reason)
	case node != nil:
		r.events.Emit(about, events.Event{Object: node, Type: corev1.EventTypeWarning, Reason: reason, Message: warning})
	}
}

// problems emits an event on each node that has a problem of its own. That there is no IPv6 is one of the cluster: it stands on
// one of its nodes.
func (r reporter) problems(all []problem) {
	ipv6 := problem{}
	for _, p := range all {
		if p.reason == reasonIPv6 {
			ipv6 = p
			ipv6.message += ". Other nodes get no event about it"
			continue
		}
		r.events.Warnf(p.node, p.reason, "%s", p.message)
	}
	r.state(ofCluster, ipv6.node, reasonIPv6, ipv6.message)
}

// selection says what is odd about the choice of tables; err is why there is none.
func (r reporter) selection(s Selection, node *corev1.Node, err error) {
	warning := ""
	switch {
	case err != nil:
		warning = fmt.Sprintf("New nodes get no route: the route tables to manage are not known: %v", err)
	case len(s.Missing) > 0:
		warning = fmt.Sprintf("The VPC has no route table for %v. Correct --route-table-vswitches or --route-table-tag", s.Missing)
	case s.Ambiguous:
		warning = fmt.Sprintf("The VPC has several route tables, and without vpc:DescribeVSwitches this program cannot find out which "+
			"of them the nodes use. It writes routes to %v. Name the tables with routeTableIDs", s.IDs)
	}
	r.state(ofCluster, node, reasonTablesUnknown, warning)
}

// reading warns about a table that cannot be read.
func (r reporter) reading(t *table, node *corev1.Node) {
	warning := ""
	if t.err != nil {
		warning = fmt.Sprintf("Nodes that join get no route in table %s and stay without network, as it cannot be read: %v", t.id, t.err)
	}
	r.state(ofTable(t.id), node, reasonReadFailed, warning)
}

// change says how a change ended that was begun at a time, in a table that holds so many entries. failed is what is known of a route that
// was not made.
func (r reporter) change(ctx context.Context, c *change, node *corev1.Node, failed failure, entries int, began time.Time) {
	logger := klog.FromContext(ctx)
	switch {
	case c.remove != nil && c.err != nil:
		logger.Error(c.err, "Route not deleted")
		return
	case c.remove != nil:
		logger.Info("Deleted route", "cidr", c.cidr, "instance", c.instance, "table", c.table)
		return
	case c.err == nil:
		observeLatency("create", began)
		r.events.Resolve(events.Of(node), reasonCreateFailed)
		r.events.Emit(events.Subject{UID: node.UID, Name: c.String()}, events.Event{
			Object: node, Type: corev1.EventTypeNormal, Reason: reasonCreated, Outcome: fmt.Sprint(began.UnixNano()),
			Message: fmt.Sprintf("Created route %s to %s in %s", c.cidr, c.instance, c.table),
		})
		return
	}
	logger.Error(c.err, "Route not created", "node", klog.KObj(node))
	switch {
	case alicloud.IsQuota(c.err):
		// Once for all nodes that wait for room.
		r.state(ofFullTable(c.table), node, reasonQuota,
			fmt.Sprintf("Route table %s is full with %d custom entries, so this node has no route, and neither do other nodes that "+
				"wait for one. Other nodes get no event about it. Request a higher quota %s (%s), or remove entries: %v", c.table, entries,
				alicloud.QuotaRouteEntries, alicloud.QuotaConsole, c.err))
	case failed.unseen():
		r.events.Warnf(node, reasonConflict,
			"Route table %s already has an entry for the pod CIDR %s that this program cannot see, for example one of a "+
				"CEN or of a VPN gateway; the node's pods cannot be reached. Remove the entry, or give the node another pod CIDR: %v", c.table, c.cidr,
			c.err)
	case alicloud.IsDuplicate(c.err), (alicloud.IsBusy(c.err) || alicloud.IsThrottled(c.err)) && failed.attempts < busyAttempts:
		// The next read shows whose entry it is; the next attempt finds the cloud idle.
	default:
		r.events.Warnf(node, reasonCreateFailed, "The route for pod CIDR %s is not there yet: %v", c.cidr, c.err)
	}
}

// tableQuota warns from 80 % of the quota. The event stands on the newest node: it is what used the quota up.
func (r reporter) tableQuota(plan *plan, newest *corev1.Node, quota Quota) {
	used, warning := plan.custom+len(plan.create), ""
	if quota.nearlyFull(plan.custom, used) {
		warning = fmt.Sprintf("Route table %s holds or needs %d custom entries; %s. Request a higher quota before it is used up: %s",
			plan.id, used, quota, alicloud.QuotaConsole)
		if quota.Advice != "" {
			warning += "; if the account has more, " + quota.Advice
		}
	}
	r.state(ofTable(plan.id), newest, reasonQuota, warning)
}

// withheld warns that routes without a node stay.
func (r reporter) withheld(n int, newest *corev1.Node) {
	withheldRemovals.WithLabelValues().Set(float64(n))
	warning := ""
	if n > 0 {
		warning = fmt.Sprintf("%d routes of this cluster no longer have a node: more than can be deleted at once, or all nodes are missing. They are kept until "+
			"their nodes return, or until the cloud shows for a minute that their instances no longer exist", n)
	}
	r.state(ofCluster, newest, reasonWithheld, warning)
}

// paused says what is not done while everything is paused. Nodes that join stay without network meanwhile.
func (r reporter) paused(o *observation, paused bool) {
	creations, deletions, warning := 0, 0, ""
	for _, plan := range o.plans {
		creations += len(plan.create)
		deletions += len(plan.removable(o.removals))
	}
	if paused && creations+deletions > 0 {
		warning = fmt.Sprintf("Global.paused of the cloud-config keeps the manager from writing to the cloud. It would create %d routes and delete %d; "+
			"nodes without a route stay without network", creations, deletions)
	}
	r.state(ofCluster, o.newest(), reasonPaused, warning)
}

// problemsOf lists what keeps nodes from having their routes in tables that were read: problems of the nodes themselves, entries
// of others in the way, and ranges that the cloud would refuse.
func problemsOf(o *observation, known subnets) []problem {
	all := slices.Clone(o.problems)
	for _, plan := range o.plans {
		for cidr, e := range plan.conflicts {
			all = append(all, problem{node: o.routes[cidr].node, reason: reasonConflict, message: fmt.Sprintf(
				"Route table %s has an entry of type %s for the pod CIDR %s that leads to %v and that this cluster does not own; it stays, and the "+
					"node's pods cannot be reached. Remove the entry, or give the node another pod CIDR", plan.id, e.Type, cidr, e.NextHops)})
		}
	}
	for cidr, want := range o.routes {
		if obstacle := known.obstacle(cidr); obstacle != "" {
			all = append(all, problem{node: want.node, reason: reasonInvalidCIDR, message: fmt.Sprintf(
				"The pod CIDR %s gets no route: it overlaps with %s. Choose a --cluster-cidr that is free in the VPC", cidr, obstacle)})
		}
	}
	slices.SortStableFunc(all, func(a, b problem) int { return strings.Compare(a.node.Name+a.message, b.node.Name+b.message) })
	return all
}

// explained returns the context of a call whose line in the log says which routes it is about, whose they are, and why they change. Without
// the Node, nobody could tell later why pods lost their route.
func explained(ctx context.Context, batch []*change) context.Context {
	why := "nodes have these pod CIDRs and no route"
	if batch[0].remove != nil {
		why = "no node has these pod CIDRs on these instances"
	}
	routes := make([]string, len(batch))
	for i, c := range batch {
		routes[i] = fmt.Sprintf("%s to %s", c.cidr, c.instance)
		if c.node != "" {
			routes[i] += " of node " + c.node
		}
	}
	return klog.NewContext(ctx, klog.FromContext(ctx).WithValues("why", why, "routes", routes))
}

// Quota is how many custom entries a route table may hold, as far as that is known.
type Quota struct {
	Value int
	// Origin says where the value comes from, and Advice how to make the value known to the manager, empty where it is known.
	Origin, Advice string
	// Assumed says that nobody has configured it: a table that holds more shows that the quota is larger.
	Assumed bool
}

// exceeded reports whether a table holds more than the value that is assumed: the quota is larger, and how large is not known.
func (q Quota) exceeded(holds int) bool { return q.Assumed && holds > q.Value }

// nearlyFull reports whether a table that holds so many entries needs 80 % of the quota or more.
func (q Quota) nearlyFull(holds, needs int) bool {
	return !q.exceeded(holds) && needs*100 >= q.Value*80
}

// String says what the quota is, and where that is known from.
func (q Quota) String() string {
	return fmt.Sprintf("the quota %s is %d (value: %s)", alicloud.QuotaRouteEntries, q.Value, q.Origin)
}
