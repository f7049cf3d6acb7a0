package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	usablePoll = 100 * time.Millisecond
	// usableTimeout leaves thousands of nodes on a busy machine their time.
	usableTimeout = 3 * time.Minute
)

// waitUsable returns when a client can work with the cluster: all nodes are Ready and have a pod CIDR, and pods can be created, which
// needs the default ServiceAccount.
func waitUsable(ctx context.Context, client kubernetes.Interface, nodes int) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, usablePoll, usableTimeout, true, func(ctx context.Context) (bool, error) {
		// Version 0 is answered from the API server's cache: thousands of nodes are listed often here.
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			missing = err.Error()
			return false, nil // the next poll may succeed; the deadline ends it
		}
		ready := 0
		for i := range list.Items {
			if usable(&list.Items[i]) {
				ready++
			}
		}
		if ready < nodes {
			missing = fmt.Sprintf("%d of %d nodes are ready", ready, nodes)
			return false, nil
		}
		if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			missing = err.Error()
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the nodes (%s): %w", missing, err)
	}
	return nil
}

func usable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && node.Spec.PodCIDR != ""
		}
	}
	return false
}

// progress writes lines with the time since the start.
type progress struct {
	to    io.Writer
	start time.Time
}

func newProgress(to io.Writer) *progress {
	if to == nil {
		to = io.Discard
	}
	return &progress{to: to, start: time.Now()}
}

// say drops write errors: a reader of the progress that has gone is no reason to stop.
func (p *progress) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.to, "[%5.1fs] %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}
