package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// hasOpenKruise says whether the API server knows BroadcastJobs.
func hasOpenKruise(api discovery.DiscoveryInterface) (bool, error) {
	return knows(api, kruise.SchemeGroupVersion.String(), kindBroadcastJob)
}

// Machines lists the nodes that have a machine, which is all but virtual-kubelet's.
func Machines(ctx context.Context, lister NodeLister) ([]*corev1.Node, error) {
	list, err := lister.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	var machines []*corev1.Node
	for i := range list.Items {
		if n := &list.Items[i]; !nodes.IsVirtualKubelet(n) {
			machines = append(machines, n)
		}
	}
	return machines, nil
}

// NodeLister lists nodes. client-go's NodeInterface satisfies it.
type NodeLister interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error)
}

// podSelector finds the pods of this and of other rollouts.
var podSelector = labels.Set{labelName: programName}.String()

// read returns the present state of the named nodes that still exist, of all that have a machine if there are no names.
func (r *Rollout) read(ctx context.Context, names map[string]bool, jobs owners, creations *refused) ([]NodeState, error) {
	nodes, err := Machines(ctx, r.opts.Kube.CoreV1().Nodes())
	if err != nil {
		return nil, err
	}
	// Without labels: a BroadcastJob of others has pods with theirs.
	list, err := r.opts.Kube.CoreV1().Pods(r.opts.Config.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return states(among(nodes, names), pods, jobs, creations), nil
}

// among returns the nodes that are named, all if there are no names.
func among(nodes []*corev1.Node, names map[string]bool) []*corev1.Node {
	if names == nil {
		return nodes
	}
	var found []*corev1.Node
	for _, n := range nodes {
		if names[n.Name] {
			found = append(found, n)
		}
	}
	return found
}

// jobs returns what exists of the rollout's jobs, whoever made them: the chart's can be looked at too.
func (r *Rollout) jobs(ctx context.Context) (owners, error) {
	found := owners{}
	list, err := r.opts.Kube.BatchV1().Jobs(r.opts.Config.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labels.Set{labelName: programName, labelInstance: r.opts.Config.Name}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", r.opts.Config.Name, err)
	}
	for i := range list.Items {
		found[list.Items[i].UID] = kindJob
	}
	if r.opts.Config.Driver != DriverBroadcastJob {
		return found, nil
	}
	uid, err := r.broadcastJob(ctx)
	if err == nil && uid != "" {
		found[uid] = kindBroadcastJob
	}
	return found, err
}

// broadcastJob returns the UID of the BroadcastJob, empty if there is none.
func (r *Rollout) broadcastJob(ctx context.Context) (types.UID, error) {
	name := r.opts.Config.Name
	got, err := r.opts.Kruise.AppsV1alpha1().BroadcastJobs(r.opts.Config.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get %s %s: %w", kindBroadcastJob, name, err)
	default:
		return got.UID, nil
	}
}
