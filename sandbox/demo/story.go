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

// poll is how often a step looks whether what it waits for has happened.
const poll = 100 * time.Millisecond

// story is what the steps share.
type story struct {
	Options
	dir string // everything that is written to disk

	cluster     *cluster.Cluster
	calls       int64 // sequence number of the last call that was counted
	cloudConfig string
	manager     manager // nil before it is started
	managerPort int
	address     string // of the Service, host:port
}

// manager is the cloud controller manager, however it is run.
type manager interface {
	// ended is nil while it runs, else an error that says how it ended.
	ended() error
	// pid is the process that leads.
	pid(ctx context.Context) (int, error)
	// tail is the end of what it has logged.
	tail(ctx context.Context) string
	// stop ends it and says how it ended.
	stop(ctx context.Context) (string, error)
}

// until polls until look returns an empty string; what it returns instead is what is still missing, and the error's text in the end.
// It ends early when the cloud controller manager has ended, as then nothing more will happen.
func (s *story) until(ctx context.Context, look func(ctx context.Context) (missing string, err error)) error {
	missing := ""
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if s.manager != nil {
			if err := s.manager.ended(); err != nil {
				return false, err
			}
		}
		var err error
		missing, err = look(ctx)
		return err == nil && missing == "", err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
	}
	return err
}

// countCalls counts the OpenAPI calls since it was called last.
func (s *story) countCalls(ctx context.Context) (reads, writes int) {
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

// showLogs prints the end of what the cloud controller manager has logged: the reason of a failure is most likely there.
func (s *story) showLogs(ctx context.Context) {
	if s.manager != nil {
		fmt.Fprintf(s.Progress, "-- the cloud controller manager's last lines:\n%s\n", s.manager.tail(ctx))
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
