package backend

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

// What the tables of docs/explanation/scale.md assume.
const (
	scalePage       = "../../../docs/explanation/scale.md"
	writesPerMinute = 90
	// leastNodes is as many as a Service is to have: three in each of three zones.
	leastNodes = 9
)

// The published quotas. TestQuotasOnThePage in docs checks those that the page lists.
const (
	clbsPublished, clbsAbroad, listenersPerCLB, backendsPerCLB, clbsPerInstance = 60, 30, 50, 200, 50
	nlbsPublished, listenersPerNLB, serversPerNLB, groupsPublished, groupsOf    = 60, 50, 400, 3000, 200
	aclsPublished, routesPublished                                              = 200, 200
)

// TestTablesAreFresh computes the tables of docs/explanation/scale.md from the published quotas, and from how many nodes the manager gives
// to a Service.
func TestTablesAreFresh(t *testing.T) {
	t.Parallel()
	golden.FreshParts(t, scalePage, map[string]string{"subsets": subsetTable(), "how-far": accountTable()})
}

// subsetTable is how many backend servers a Service of one port has in clusters of several sizes, and what a node event costs then.
func subsetTable() string {
	var b strings.Builder
	b.WriteString("| nodes | Services with a CLB, one port each | backend servers per Service | mean writes per node event |\n" +
		"| --- | --- | --- | --- |\n")
	for _, size := range []struct{ nodes, services int }{{100, 50}, {500, 50}, {1000, 200}, {5000, 2000}} {
		low, high := sharesOf(size.nodes, size.services, backendsPerCLB, clbsPerInstance)
		writes := func(backends int) int { return int(math.Round(float64(backends*size.services) / float64(size.nodes))) }
		members := to(low, high)
		if low == size.nodes {
			members = "all " + members
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", thousands(size.nodes), thousands(size.services), members, to(writes(low), writes(high)))
	}
	return b.String()
}

// sharesOf are the fewest and the most nodes that a Service keeps, where each of the Services counts once for the quota.
func sharesOf(nodes, services, room, times int) (low, high int) {
	wanted := ChoiceInput{Use: Use{Share: ShareOf(times, nodes, services, 0)}}
	found := sizeOf(&wanted, nodes, 0, min(nodes, room))
	return found.low, found.high
}

func secondsFor(writes int) int {
	return int(math.Ceil(float64(writes) * 60 / writesPerMinute))
}

// accountTable is how many nodes and Services each quota allows by itself.
func accountTable() string {
	listeners, perCLB, perNLB, behind, in := listenersPerCLB, backendsPerCLB, serversPerNLB, clbsPerInstance, groupsOf
	nlbs, nlbListeners, acls, groups, routes := nlbsPublished, listenersPerNLB, aclsPublished, groupsPublished, routesPublished
	const alike = "the same"
	rows := [][]string{
		{
			"CLBs per account", sizes("any", clbsPublished) + abroad(clbsAbroad),
			sizes("any", clbsPublished*listeners) + abroad(clbsAbroad*listeners) + " in groups",
			"NLBs",
		},
		{"listeners per CLB", fmt.Sprintf("%d ports per Service", listeners), fmt.Sprintf("%d ports per CLB of a group", listeners),
			"`loadbalancer-group-overflow`"},
		{"backend servers per CLB", sizes(fmt.Sprint(perCLB), "any"), sharedBy(listeners, "a CLB", perCLB), "an NLB"},
		{"CLBs that an instance can be behind", sizes("any", behind), crowded(perCLB, behind), "groups: CLBs count, not Services"},
		{"access control lists per account", sizes("any", acls) + " with `loadBalancerSourceRanges`", alike,
			"`loadbalancer-acl-id`: one list for many Services"},
		{"NLBs per account", sizes("any", nlbs), sizes("any", nlbs*nlbListeners) + " in groups",
			"CLBs"},
		{"listeners per NLB", fmt.Sprintf("%d ports per Service", nlbListeners), fmt.Sprintf("%d ports per NLB of a group", nlbListeners),
			"`loadbalancer-group-overflow`"},
		{"backend servers per NLB", sizes(fmt.Sprint(perNLB), "any"), sharedBy(nlbListeners, "an NLB", perNLB), ""},
		{"server groups of NLBs per account", sizes("any", groups), alike, "CLBs for some Services"},
		{"server groups of NLBs that a backend server can be in", sizes("any", in), crowded(perNLB, in), ""},
		{
			"custom entries per route table", sizes(fmt.Sprint(routes), "any") + ", with one pod CIDR per node", alike,
			"[pods with addresses of the VPC](../tutorials/pods.md) need no routes",
		},
		{
			"writes per action", sizes("any", writesPerMinute) + " with one node event per minute", leastTime(behind),
			"a number in place of `auto`",
		},
	}
	var b strings.Builder
	b.WriteString("| quota | without subsets and groups | with `auto`, or with groups | other ways to go further |\n" +
		"| --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

func sharedBy(ports int, on string, room int) string {
	return fmt.Sprintf("any x any; with %d ports on %s, %d nodes per port", ports, on, room/ports)
}

// crowded is up to how many Services each has three nodes per zone, in clusters of several sizes.
func crowded(room, times int) string {
	var found []string
	for _, nodes := range []int{100, 1000, 5000} {
		step := times
		for next := int(StepOf(times, step+1)); ; next = int(StepOf(times, step+1)) {
			if low, _ := sharesOf(nodes, next, room, times); low < leastNodes {
				break
			}
			step = next
		}
		found = append(found, sizes(thousands(nodes), step))
	}
	return strings.Join(found, ", ") + fmt.Sprintf(" with at least %d nodes each", leastNodes)
}

// leastTime is how long the writes of one node event take where a node is behind as many CLBs as its Services give to it.
func leastTime(times int) string {
	return fmt.Sprintf("any x any: a node event costs at most %d writes on average, %d s", times, secondsFor(times))
}

func abroad(n int) string { return fmt.Sprintf(" (%s on the international site)", thousands(n)) }

func sizes(nodes string, services any) string {
	if n, ok := services.(int); ok {
		services = thousands(n)
	}
	return fmt.Sprintf("%s x %v", nodes, services)
}

// to writes a range.
func to(low, high int) string {
	if low == high {
		return thousands(low)
	}
	return thousands(low) + " to " + thousands(high)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
