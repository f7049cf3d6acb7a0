package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// poll is the interval at which a step checks what it waits for.
const poll = 100 * time.Millisecond

// story is the state that the steps share.
type story struct {
	Options
	dir string // for all files

	cluster *cluster.Cluster
	calls   int64  // sequence number of the last call that was counted
	address string // of the Service, host:port
}

// until polls until check returns an empty string. Otherwise check returns what is missing, which becomes the text of the error.
func (s *story) until(ctx context.Context, check func(ctx context.Context) (missing string, err error)) error {
	missing := ""
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = check(ctx)
		return err == nil && missing == "", err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
	}
	return err
}

// countCalls counts the OpenAPI calls since it was called last.
func (s *story) countCalls() (reads, writes int) {
	if s.cluster == nil {
		return 0, 0
	}
	for _, call := range s.cluster.Cloud.Calls(s.calls) {
		s.calls = max(s.calls, call.Seq)
		if call.Kind == "write" {
			writes++
		} else {
			reads++
		}
	}
	return reads, writes
}

// clusterNodes lists the Nodes by name.
func (s *story) clusterNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := s.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return list.Items, nil
}

// instances lists the running instances by ID.
func (s *story) instances() []cluster.Machine {
	machines := s.cluster.Cloud.Machines()
	return slices.DeleteFunc(machines, func(m cluster.Machine) bool { return !m.Running })
}

// pods lists the ready pods of an app as a map from node name to pod.
func (s *story) pods(ctx context.Context, app string) (map[string]corev1.Pod, error) {
	list, err := s.cluster.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", app, err)
	}
	ready := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready[pod.Spec.NodeName] = pod
		}
	}
	return ready, nil
}

func (s *story) path(name string) string { return filepath.Join(s.dir, name) }

// everythingStops ends the programs and the cluster and removes the directory.
func everythingStops(ctx context.Context, s *story) (string, error) {
	var errs []error
	seen := "no process and no file left"
	if s.cluster != nil {
		if pods, err := s.managers(ctx); err == nil && len(pods) > 0 {
			errs = append(errs, s.managerEnds(ctx))
			seen = "the pods of the cloud controller manager are gone; " + seen
		}
		errs = append(errs, s.cluster.Stop())
		s.cluster = nil
	}
	errs = append(errs, os.RemoveAll(s.dir))
	return seen, errors.Join(errs...)
}
