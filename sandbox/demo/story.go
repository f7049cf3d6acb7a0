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
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
)

// poll is the interval at which a step checks what it waits for.
const poll = 100 * time.Millisecond

// story is the state that the steps share.
type story struct {
	Options
	dir string // for all files

	cluster     *cluster.Cluster
	calls       int64 // sequence number of the last call that was counted
	cloudConfig string
	manager     manager // nil before it is started
	managerPort int
	address     string // of the Service, host:port
}

// manager is the running cloud controller manager.
type manager interface {
	// ended returns nil while it runs, otherwise an error that states how it ended.
	ended() error
	// pid returns the process ID of the leader.
	pid(ctx context.Context) (int, error)
	// tail returns the end of its log.
	tail(ctx context.Context) string
	// stop stops it and returns how it ended.
	stop(ctx context.Context) (string, error)
}

// until polls until check returns an empty string. Otherwise check returns what is missing, which becomes the text of the error.
// until fails early if the cloud controller manager has ended, because nothing more will happen then.
func (s *story) until(ctx context.Context, check func(ctx context.Context) (missing string, err error)) error {
	missing := ""
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if s.manager != nil {
			if err := s.manager.ended(); err != nil {
				return false, err
			}
		}
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

// identify gives a program the identity of a published manifest.
func (s *story) identify(ctx context.Context, manifest string) (identity.Identity, error) {
	content, err := readFile(s.Deploy, manifest)
	if err != nil {
		return identity.Identity{}, err
	}
	return identity.Grant(ctx, identity.Options{Client: s.cluster.Client, Config: s.cluster.Config, Manifest: content, Dir: s.dir})
}

func (s *story) path(name string) string { return filepath.Join(s.dir, name) }

// showLogs prints the end of the log of the cloud controller manager, which is likely to state the reason of a failure.
func (s *story) showLogs(ctx context.Context) {
	if s.manager != nil {
		fmt.Fprintf(s.Progress, "-- last log lines of the cloud controller manager:\n%s\n", s.manager.tail(ctx))
	}
}

// everythingStops ends the programs and the cluster and removes the directory.
func everythingStops(ctx context.Context, s *story) (string, error) {
	var errs []error
	seen := "no process and no file left"
	if s.manager != nil {
		end, err := s.manager.stop(ctx)
		errs = append(errs, err)
		seen = fmt.Sprintf("cloud controller manager ended on SIGTERM (%s); %s", end, seen)
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
		s.cluster = nil
	}
	errs = append(errs, os.RemoveAll(s.dir))
	return seen, errors.Join(errs...)
}
