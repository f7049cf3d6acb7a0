package vpcroute

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// cidrGrace is how long a new node may be without pod CIDR before an event says so: the kube-controller-manager assigns it within
// a second or two.
const cidrGrace = 30 * time.Second

// reporter emits the events of passes.
type reporter struct {
	events *events.Recorder
}

// warnOnce emits a Warning about something that concerns many nodes, on one of them.
func (r reporter) warnOnce(about events.Subject, node *corev1.Node, reason, format string, args ...any) {
	if node != nil {
		r.events.Emit(about, events.Event{Object: node, Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
}

// problems emits an event on each node that has a problem of its own. That there is no IPv6 is one of the cluster: it stands on
// one of its nodes.
func (r reporter) problems(all []problem) {
	ipv6 := false
	for _, p := range all {
		if p.reason != reasonIPv6 {
			r.events.Warnf(p.node, p.reason, "%s", p.message)
			continue
		}
		ipv6 = true
		r.warnOnce(ofCluster, p.node, reasonIPv6, "%s. Other nodes get no event about it", p.message)
	}
	if !ipv6 {
		r.events.Resolve(ofCluster, reasonIPv6)
	}
}

func (r reporter) withoutCIDR(waiting []*corev1.Node) {
	for _, node := range waiting {
		if time.Since(node.CreationTimestamp.Time) >= cidrGrace {
			r.events.Warnf(node, reasonNoCIDR, "The node has no pod CIDR, so it gets no route. The kube-controller-manager assigns pod CIDRs: it needs "+
				"--allocate-node-cidrs=true and --cluster-cidr, with free ranges left")
		}
	}
}

// selection says what is odd about the choice of tables; err is why there is none.
func (r reporter) selection(s Selection, node *corev1.Node, err error) {
	switch {
	case err != nil:
		r.warnOnce(ofCluster, node, reasonTablesUnknown, "New nodes get no route: the route tables to manage are not known: %v", err)
	case len(s.Missing) > 0:
		r.warnOnce(ofCluster, node, reasonTablesUnknown, "The VPC has no route table for %v. Correct --route-table-vswitches or --route-table-tag", s.Missing)
	case s.Ambiguous:
		r.warnOnce(ofCluster, node, reasonTablesUnknown, "The VPC has several route tables, and without vpc:DescribeVSwitches this program cannot find out which "+
			"of them the nodes use. It writes routes to %v. Name the tables with routeTableIDs", s.IDs)
	default:
		r.events.Resolve(ofCluster, reasonTablesUnknown)
	}
}

// reading warns about a table that cannot be read.
func (r reporter) reading(read reading, node *corev1.Node) {
	if read.err == nil {
		r.events.Resolve(ofTable(read.id), reasonReadFailed)
		return
	}
	r.warnOnce(ofTable(read.id), node, reasonReadFailed, "Nodes that join get no route in table %s and stay without network, as it cannot be read: %v", read.id, read.err)
}

// tableQuota warns from 80 % of the quota. The event stands on the newest node: it is what used the quota up.
func (r reporter) tableQuota(t *table, plan *plan, newest *corev1.Node, quota Quota) {
	used := t.custom + len(plan.create)
	if !quota.nearlyFull(t.custom, used) {
		r.events.Resolve(ofTable(t.id), reasonQuota)
		return
	}
	r.warnOnce(ofTable(t.id), newest, reasonQuota, "Route table %s holds or needs %d custom entries; %s. Request a higher quota before it is used up: %s%s",
		t.id, used, quota, alicloud.QuotaConsole, quota.otherwise())
}

// full warns that the cloud called the table full, once for all nodes.
func (r reporter) full(id string, entries int, node *corev1.Node, err error) {
	r.warnOnce(ofFullTable(id), node, reasonQuota, "Route table %s is full with %d custom entries, so this node has no route, and neither do other nodes that wait for "+
		"one. Other nodes get no event about it. Request a higher quota %s (%s), or remove entries: %v", id, entries, alicloud.QuotaRouteEntries, alicloud.QuotaConsole, err)
}

// withheld warns that routes without a node stay.
func (r reporter) withheld(n int, newest *corev1.Node) {
	withheldRemovals.WithLabelValues().Set(float64(n))
	if n == 0 {
		r.events.Resolve(ofCluster, reasonWithheld)
		return
	}
	r.warnOnce(ofCluster, newest, reasonWithheld, "%d routes of this cluster no longer have a node: more than can be deleted at once, or all nodes are missing. They are kept until "+
		"their nodes return, or until the cloud shows for a minute that their instances no longer exist", n)
}

// paused says what is not done while everything is paused. Nodes that join stay without network meanwhile.
func (r reporter) paused(plans []*plan, removals decision, newest *corev1.Node) {
	creations, deletions := 0, 0
	for _, plan := range plans {
		creations += len(plan.create)
		deletions += len(plan.removable(removals))
	}
	if creations+deletions == 0 {
		r.events.Resolve(ofCluster, reasonPaused)
		return
	}
	r.warnOnce(ofCluster, newest, reasonPaused, "Global.paused of the cloud-config keeps the manager from writing to the cloud. It would create %d routes and delete %d; "+
		"nodes without a route stay without network", creations, deletions)
}
