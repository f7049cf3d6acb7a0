package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// Far more Services than CLBs, in an account in which no quota of CLBs is raised. All may share them.
const (
	sharingNodes, sharingServices, sharingGroups = 500, 2000, 10
	listenersPerCLB                              = 50
	// mostCLBs is one more than their listeners need.
	mostCLBs = sharingServices/listenersPerCLB + 1
	// leastOfPort is how many backend servers each port has at least: a CLB takes 200, for 50 ports.
	leastOfPort = 4
	// overMean bounds how many times a node is a backend server, compared with the mean of all nodes.
	overMean = 1.3
)

// sharedCLBs measures Services that share CLBs: how they come, how they are spread, and what a restart does.
func sharedCLBs(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: roomForNodes, rateLimits: true, config: publishedConfig(cloud.Limits{})})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err = e.readyForStorm(ctx, sharingNodes); err != nil {
		return nil, err
	}
	return inTurn(ctx, e.shareCLBs, e.spreadOfShares, e.restartOfShares)
}

// sharingService has a port of its own, and may be on any CLB of its group. Each group needs several.
func sharingService(i int) *corev1.Service {
	service := newServiceOf(productCLB, fmt.Sprintf("shared-%d", i), 1)
	service.Annotations[annotationGroup], service.Annotations[annotationGroupOverflow] = fmt.Sprintf("edge-%d", i%sharingGroups), "true"
	service.Spec.Ports[0].Port += int32(i)
	return service
}

func (e *env) shareCLBs(ctx context.Context) ([]Figure, error) {
	services := make([]*corev1.Service, sharingServices)
	for i := range services {
		services[i] = sharingService(i)
	}
	forced := minutes(sharingServices, changesPerMinute)
	came, err := e.createTogether(ctx, services, forced)
	if err != nil {
		return nil, err
	}
	e.keepStorm(came, forced)
	mib, err := highestMiB(e.manager.pid())
	operation := fmt.Sprintf("%d Services of one port in %d groups, %d nodes", sharingServices, sharingGroups, sharingNodes)
	return append(came.figures(operation, forced), withoutGoal(operation+": highest memory of the manager", mib, "MiB")), err
}

// spreadOfShares compares the CLBs and the nodes.
func (e *env) spreadOfShares(ctx context.Context) ([]Figure, error) {
	balancers, err := e.sandbox.Cloud.LoadBalancers(ctx)
	if err != nil {
		return nil, err
	}
	groups := members(balancers)
	fewest, most, mean := spread(groups, sharingNodes)
	e.measured.Members = plot.Distribution(loads(groups, sharingNodes))
	e.say("%d vServer groups have %d backend servers at least, a node is in %d at most and in %.1f on average", len(groups), fewest, most,
		mean)
	return []Figure{
		atMost("CLBs of all groups", float64(len(balancers)), "CLBs", mostCLBs),
		atLeast("running listeners", float64(running(balancers)), "listeners", sharingServices),
		atLeast("backend servers of a port, the fewest", float64(fewest), "servers", leastOfPort),
		// A node is in a whole number of groups.
		atMost("vServer groups that a node is in, compared with the mean, the most", float64(most)/mean, "", max(overMean, (mean+1)/mean)),
	}, nil
}

// running counts the listeners that run.
func running(balancers []cluster.LoadBalancer) int {
	n := 0
	for _, lb := range balancers {
		n += lb.Running
	}
	return n
}

// members lists the instances in each vServer group.
func members(balancers []cluster.LoadBalancer) map[string][]string {
	all := map[string][]string{}
	for _, lb := range balancers {
		maps.Copy(all, lb.Groups)
	}
	return all
}

// spread is how many members the smallest group has, in how many groups the busiest of the nodes is, and in how many each is on average.
func spread(groups map[string][]string, nodes int) (fewest, most int, mean float64) {
	total := 0
	fewest = math.MaxInt
	for _, ids := range groups {
		fewest, total = min(fewest, len(ids)), total+len(ids)
	}
	return fewest, slices.Max(loads(groups, nodes)), float64(total) / float64(nodes)
}

// loads are in how many groups each of the nodes is.
func loads(groups map[string][]string, nodes int) []int {
	times := map[string]int{}
	for _, ids := range groups {
		for _, id := range ids {
			times[id]++
		}
	}
	found := slices.Collect(maps.Values(times))
	return append(found, make([]int, max(0, nodes-len(found)))...)
}

// restartOfShares counts what a new leader writes.
func (e *env) restartOfShares(ctx context.Context) ([]Figure, error) {
	if err := e.stopManager(ctx); err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("restart with %d unchanged Services in %d groups", sharingServices, sharingGroups)
	e.begin()
	if err := e.startCalling(ctx); err != nil {
		return nil, err
	}
	t, err := e.calmed(ctx)
	e.say("%s: %s", operation, t)
	return []Figure{
		atMost(operation, float64(t.writes), "writes", 0), atMost(operation+": calls that the cloud refuses", float64(t.refused), "calls", 0),
		withoutGoal(operation, float64(t.reads), "reads"),
	}, err
}
