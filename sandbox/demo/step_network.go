package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const httpPort = ":80"

// podsDoNotReachEachOther shows what a cluster without routes is like.
func podsDoNotReachEachOther(ctx context.Context, s *story) (string, error) {
	if err := s.createFrom(ctx, "probe.yaml"); err != nil {
		return "", err
	}
	machines := s.instances()
	probes, err := s.probes(ctx)
	if err != nil {
		return "", err
	}
	from, to := machines[0], probes[machines[1].NodeName]
	answer, err := s.cluster.Cloud.Get(ctx, from.ID, to.Status.PodIP+httpPort)
	if err == nil {
		return "", fmt.Errorf("pod %s answers %q to node %s without any route", to.Name, answer, from.NodeName)
	}
	return fmt.Sprintf("as it should be, %s cannot reach %s on %s: %v", from.NodeName, to.Status.PodIP, to.Spec.NodeName, errors.Unwrap(err)),
		nil
}

// probes waits until each node has its ready probe pod, and returns them by node name.
func (s *story) probes(ctx context.Context) (map[string]corev1.Pod, error) {
	var probes map[string]corev1.Pod
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		var err error
		probes, err = s.pods(ctx, "probe")
		if count := len(s.instances()); len(probes) < count {
			return fmt.Sprintf("%d of %d probe pods are ready", len(probes), count), err
		}
		return "", err
	})
	return probes, err
}

// routesAreWritten waits until the VPC's route tables lead each node's pod CIDR to its instance.
func routesAreWritten(ctx context.Context, s *story) (string, error) {
	var entries []cluster.RouteEntry
	err := s.until(ctx, func(ctx context.Context) (string, error) {
		list, err := s.clusterNodes(ctx)
		if err != nil {
			return "", err
		}
		if entries, err = s.cluster.Cloud.CustomRoutes(ctx); err != nil {
			return "", err
		}
		for _, node := range list {
			machine, _ := s.machineOf(node.Name)
			want := cluster.RouteEntry{CIDR: node.Spec.PodCIDR, NextHop: machine.ID, Status: "Available"}
			if !slices.Contains(entries, want) {
				return fmt.Sprintf("no route leads %s to %s of node %s", want.CIDR, want.NextHop, node.Name), nil
			}
		}
		if len(entries) > len(list) {
			return "", fmt.Errorf("the route table has %d entries for %d nodes", len(entries), len(list))
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	var seen []string
	for _, entry := range entries {
		seen = append(seen, entry.CIDR+" to "+entry.NextHop)
	}
	return strings.Join(seen, ", "), nil
}

// machineOf is the running instance behind a node.
func (s *story) machineOf(nodeName string) (cluster.Machine, bool) {
	machines := s.instances()
	i := slices.IndexFunc(machines, func(m cluster.Machine) bool { return m.NodeName == nodeName })
	if i < 0 {
		return cluster.Machine{}, false
	}
	return machines[i], true
}

// podsReachEachOther tries the probe pod of each node from every other node, until all answer: the route table lets packets through
// only once the machines' source/destination check is off, too.
func podsReachEachOther(ctx context.Context, s *story) (string, error) {
	probes, err := s.probes(ctx)
	if err != nil {
		return "", err
	}
	pairs := 0
	err = s.until(ctx, func(ctx context.Context) (string, error) {
		pairs = 0
		for _, from := range s.instances() {
			for nodeName, probe := range probes {
				if nodeName == from.NodeName {
					continue
				}
				answer, unreachable := s.cluster.Cloud.Get(ctx, from.ID, probe.Status.PodIP+httpPort)
				if unreachable != nil {
					return fmt.Sprintf("from node %s to pod %s on %s: %v", from.NodeName, probe.Name, nodeName, unreachable), nil
				}
				if answer != probe.Name {
					return "", fmt.Errorf("from node %s to pod %s: %q answers", from.NodeName, probe.Name, answer)
				}
				pairs++
			}
		}
		return "", nil
	})
	return fmt.Sprintf("%d of %d pairs of nodes", pairs, nodes*(nodes-1)), err
}
