package account

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
)

// Story is one thing that the stories show.
type Story struct {
	// Name is what a skip and the name of the test say.
	Name string
	// Shows is for the plan.
	Shows string
	// Writes are the most calls that change something, by product and action.
	Writes map[string]int
	run    func(*Suite, context.Context) error
}

// pair of writes that every Service with a load balancer has.
const (
	createCLB = "slb CreateLoadBalancer"
	createNLB = "nlb CreateLoadBalancer"
)

// clbWrites are the writes of one CLB with listeners for so many ports, from its creation to its deletion.
func clbWrites(ports, groupChanges int) map[string]int {
	return map[string]int{
		createCLB: 1, "slb CreateVServerGroup": ports, "slb CreateLoadBalancerTCPListener": ports, "slb StartLoadBalancerListener": ports,
		"slb AddVServerGroupBackendServers": groupChanges, "slb RemoveVServerGroupBackendServers": groupChanges,
		"slb ModifyVServerGroupBackendServers": groupChanges,
		"slb SetLoadBalancerDeleteProtection":  1, "slb SetLoadBalancerModificationProtection": 1, "slb DeleteLoadBalancer": 1,
	}
}

// nlbWrites are the writes of one NLB with one port.
func nlbWrites() map[string]int {
	return map[string]int{
		createNLB: 1, "nlb CreateServerGroup": 1, "nlb CreateListener": 1, "nlb AddServersToServerGroup": 2,
		"nlb RemoveServersFromServerGroup": 1,
		"nlb UpdateLoadBalancerProtection": 2, "nlb DeleteListener": 1, "nlb DeleteLoadBalancer": 1, "nlb DeleteServerGroup": 1,
		"nlb TagResources": 1,
	}
}

// Stories returns all stories in the order in which they run.
func Stories() []Story {
	return []Story{
		{"clb", "a Service on a CLB answers from outside, also on a port that is added while the manager is killed", clbWrites(2, 2),
			(*Suite).clb},
		{"nlb", "a Service on an NLB answers from outside under its name", nlbWrites(), (*Suite).nlb},
		{"routes", "pods of different nodes reach each other, and each node has its route entry", nil, (*Suite).routes},
		{"node", "an instance joins, becomes a Node and a backend server, is released, and leaves neither", clbWrites(1, 4), (*Suite).node},
		{"adoption", "a CLB of the official CCM is taken over as it is, and given back as it was", clbWrites(1, 2), (*Suite).adoption},
	}
}

// readsPerMinute is what the manager and the stories read at most, by far: they poll while they wait.
const readsPerMinute = 240

// Write says what a run will do and what that costs at most.
func (s *Suite) Write(w io.Writer) error {
	writes, price := map[string]int{}, 0.0
	for _, story := range Stories() {
		if why := s.o.Skip[story.Name]; why != "" {
			fmt.Fprintf(w, "%-8s does not run: %s\n", story.Name, why)
			continue
		}
		fmt.Fprintf(w, "%-8s %s\n", story.Name, story.Shows)
		for call, n := range story.Writes {
			writes[call] += n
		}
	}
	if s.o.ClusterCIDR != "" {
		fmt.Fprintln(w,
			"besides, for each node that has none: one route entry, which is deleted at the end, and once the end of the check of source and destination")
	}
	total := 0
	for _, n := range writes {
		total += n
	}
	fmt.Fprintf(w, "at most %d calls that change something, and %d reads a minute:\n", total, readsPerMinute)
	for _, call := range slices.Sorted(maps.Keys(writes)) {
		fmt.Fprintf(w, "  %3d %s\n", writes[call], call)
	}
	for _, call := range slices.Sorted(maps.Keys(writes)) {
		if each, costs := conformance.PriceOf(call); costs {
			fmt.Fprintf(w, "%d times %s at %.2f CNY for each started hour\n", writes[call], call, each)
			price += each * float64(writes[call])
		}
	}
	_, err := fmt.Fprintf(w,
		"together at most %.2f CNY, traffic and joining instances not included; these are assumed upper bounds: look up the prices of your region\n", price)
	return err //nolint:wrapcheck // the writer's own
}
