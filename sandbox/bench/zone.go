package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const (
	deadZone = "cn-hangzhou-c"
	// mostOut is the share of the dead backend servers whose time counts.
	mostOut = 0.99
)

// withThirdZone is a configuration with the zone that dies.
func withThirdZone(config *emulator.Config) *emulator.Config {
	more := *config
	more.VSwitches = append(slices.Clone(config.VSwitches),
		cloud.VSwitchConfig{ID: "vsw-c", VPCID: config.VSwitches[0].VPCID, Zone: deadZone, CIDR: "10.3.0.0/16"})
	return &more
}

// zoneDies measures a fleet of which a third stops at once: all nodes of one of three zones.
func (e *env) zoneDies(ctx context.Context) ([]Figure, error) {
	if err := e.startCalling(ctx, productCLB); err != nil {
		return nil, err
	}
	if err := e.calmed(ctx); err != nil {
		return nil, err
	}
	return e.zoneStops(ctx)
}

// zoneStops stops the instances of a zone, and waits until the last dead backend server is out.
func (e *env) zoneStops(ctx context.Context) ([]Figure, error) {
	before, err := e.sandbox.Cloud.LoadBalancers(ctx)
	if err != nil {
		return nil, err
	}
	e.begin()
	dead, err := e.stopZone()
	if err != nil {
		return nil, err
	}
	s := newStorm(members(before), dead)
	e.say("%d instances stop, %d backend servers of %d vServer groups are dead", len(dead), s.left, len(s.members))
	first, err := e.untilSilent(ctx, len(dead))
	if err != nil {
		return nil, err
	}
	seen := e.mark
	err = e.withinTwice(ctx, minutes(len(s.members), changesPerMinute), "no backend server is dead", func(context.Context) (string, error) {
		for _, call := range e.cloud.Calls(seen) {
			seen = call.Seq
			if failed := s.follow(call); failed != nil {
				return "", failed
			}
		}
		if s.left > 0 {
			return fmt.Sprintf("%d are", s.left), nil
		}
		return "", nil
	})
	if err != nil {
		return nil, err
	}
	e.say("the zone is out: %s", count(e.since(everything), ofProduct(productCLB)))
	return append(s.figures(fmt.Sprintf("%s, a zone of %d nodes stops", fleetOperation, len(dead)), first),
		e.refusedByLimits("meanwhile", e.since(everything))), nil
}

// stopZone stops the instances of the zone, and with them their kubelets. It returns their IDs.
func (e *env) stopZone() (map[string]bool, error) {
	dead := map[string]bool{}
	for _, instance := range e.cloud.Instances() {
		if instance.ZoneID != deadZone {
			continue
		}
		if _, err := e.cloud.PutInstance(instance.ID, emulator.InstanceSpec{Status: alicloud.InstanceStopped}); err != nil {
			return nil, fmt.Errorf("stop instance %s: %w", instance.ID, err)
		}
		dead[instance.ID] = true
	}
	return dead, nil
}

// untilSilent waits until Kubernetes shows all nodes of the zone as not ready, and returns when it did so with the first one.
func (e *env) untilSilent(ctx context.Context, n int) (time.Time, error) {
	silent := func(node *corev1.Node) bool {
		return node.Labels[corev1.LabelTopologyZone] == deadZone && condition(node, corev1.NodeReady) != corev1.ConditionTrue
	}
	if err := e.untilNodes(ctx, n, "silent", silent); err != nil {
		return time.Time{}, err
	}
	nodes, err := e.watched.List(labels.Everything())
	if err != nil {
		return time.Time{}, fmt.Errorf("list the watched nodes: %w", err)
	}
	var since []time.Time
	for _, node := range slices.DeleteFunc(nodes, func(node *corev1.Node) bool { return !silent(node) }) {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				since = append(since, c.LastTransitionTime.Time)
			}
		}
	}
	slices.SortFunc(since, time.Time.Compare)
	e.say("%d nodes are silent, the last one %s after the first one", n, since[len(since)-1].Sub(since[0]))
	return since[0], nil
}

// forced is how long the rate limits make the storm take: one write for each Service takes all its dead backend servers out.
func (s *storm) forced() time.Duration { return minutes(len(s.members), changesPerMinute) }

// delays are how long after a time each dead backend server left. Those that have not leave now.
func (s *storm) delays(since time.Time) []time.Duration {
	delays := s.after(since)
	for range s.left {
		delays = append(delays, time.Since(since))
	}
	return delays
}

// figures are those of the storm. The first node was found to be dead at a time.
func (s *storm) figures(operation string, first time.Time) []Figure {
	busiest := 0
	for _, n := range s.removals {
		busiest = max(busiest, n)
	}
	delays := s.delays(first)
	return []Figure{
		atMost(operation+": dead backend servers that stay", float64(s.left), "servers", 0),
		atMost(fmt.Sprintf("%s: 99 %% of %d dead backend servers are out, after the first node is found to be dead", operation, len(delays)),
			quantile(delays, mostOut).Seconds(), "s", overForced*s.forced().Seconds()),
		// The manager writes again to those Services that it wrote to before Kubernetes had noticed the last nodes.
		withoutGoal(operation+": writes that take them out, for each Service", float64(busiest)/float64(len(s.members)), "writes"),
		atMost(operation+": Services without a live backend server at any time", float64(len(s.empty)), "Services", 0),
	}
}

// members lists the instances in each vServer group.
func members(balancers []cluster.LoadBalancer) map[string][]string {
	all := map[string][]string{}
	for _, lb := range balancers {
		maps.Copy(all, lb.Groups)
	}
	return all
}
