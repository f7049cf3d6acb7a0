package support

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Since is how far back the logs go.
const Since = time.Hour

// maxLog is how much of the log of one pod is taken, in bytes; maxObjects how many objects of a kind.
const (
	maxLog     = 20 << 20
	maxObjects = 5000
)

// Cluster says what to collect from the API server.
type Cluster struct {
	Kube kubernetes.Interface
	// Namespace and Selector are those of the manager's pods.
	Namespace, Selector string
	// Components are the sources of the events that count, Prefixes those of the keys of annotations and labels of Services.
	Components, Prefixes []string
	// Write is the message of log lines about writes to the cloud.
	Write string
	// Metrics reads those of the manager at an address.
	Metrics func(ctx context.Context, address string) (string, error)
}

// Collect adds what there is of it. What cannot be read is noted as missing.
func (c Cluster) Collect(ctx context.Context, to *Archive) {
	for _, part := range []struct {
		name string
		add  func(context.Context, *Archive) error
	}{
		{"kubernetes.json", c.version}, {"services.json", c.services}, {"nodes.json", c.nodes}, {"events.txt", c.events},
		{"leases.json", c.leases}, {"pods.json", c.pods},
	} {
		if err := part.add(ctx, to); err != nil {
			to.Missing(part.name, err)
		}
	}
}

func (c Cluster) version(_ context.Context, to *Archive) error {
	version, err := c.Kube.Discovery().ServerVersion()
	if err == nil {
		to.JSON("kubernetes.json", "version of the API server", version)
	}
	return err
}

// service is what a bundle has of a Service. Annotations and labels of other programs may hold anything, and stay out.
type service struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              corev1.ServiceSpec   `json:"spec"`
	Status            corev1.ServiceStatus `json:"status"`
}

func (c Cluster) services(ctx context.Context, to *Archive) error {
	list, err := c.Kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return err
	}
	found := []service{}
	for i := range list.Items {
		svc := &list.Items[i]
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 && len(svc.Finalizers) == 0 {
			continue
		}
		found = append(found, service{c.metadata(&svc.ObjectMeta), svc.Spec, svc.Status})
	}
	to.JSON("services.json", "Services with a load balancer, with their conditions", found)
	return nil
}

func (c Cluster) metadata(of *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: of.Name, Namespace: of.Namespace, UID: of.UID, ResourceVersion: of.ResourceVersion, Generation: of.Generation,
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp, Finalizers: of.Finalizers,
		Annotations: c.ours(of.Annotations), Labels: c.ours(of.Labels),
	}
}

// ours keeps the keys that this program reads or writes.
func (c Cluster) ours(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		if slices.ContainsFunc(c.Prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			kept[key] = value
		}
	}
	return kept
}

// node is what a bundle has of a Node. Its labels say zone, type and exclusions; annotations of other programs stay out.
type node struct {
	Name       string                 `json:"name"`
	Created    metav1.Time            `json:"created"`
	Labels     map[string]string      `json:"labels"`
	Spec       corev1.NodeSpec        `json:"spec"`
	Conditions []corev1.NodeCondition `json:"conditions"`
	Addresses  []corev1.NodeAddress   `json:"addresses"`
	Info       corev1.NodeSystemInfo  `json:"nodeInfo"`
	Deleting   *metav1.Time           `json:"deletionTimestamp,omitempty"`
}

func (c Cluster) nodes(ctx context.Context, to *Archive) error {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return err
	}
	found := []node{}
	for i := range list.Items {
		n := &list.Items[i]
		found = append(found,
			node{n.Name, n.CreationTimestamp, n.Labels, n.Spec, n.Status.Conditions, n.Status.Addresses, n.Status.NodeInfo, n.DeletionTimestamp})
	}
	to.JSON("nodes.json", "Nodes with labels, taints, provider IDs, addresses and conditions", found)
	return nil
}

// events adds the events of the manager, the oldest first, one per line.
func (c Cluster) events(ctx context.Context, to *Archive) error {
	list, err := c.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return !slices.Contains(c.Components, cmp.Or(e.Source.Component, e.ReportingController))
	})
	slices.SortStableFunc(ours, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
	var text strings.Builder
	for i := range ours {
		e := &ours[i]
		fmt.Fprintf(&text, "%s %s %s %s %s/%s x%d: %s\n", lastSeen(e).UTC().Format(time.RFC3339), e.Type, e.Reason, e.InvolvedObject.Kind,
			e.InvolvedObject.Namespace, e.InvolvedObject.Name, max(e.Count, 1), strings.ReplaceAll(e.Message, "\n", " "))
	}
	to.Text("events.txt", "events of the manager that the API server still has", text.String())
	return nil
}

func lastSeen(e *corev1.Event) time.Time {
	for _, seen := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !seen.IsZero() {
			return seen
		}
	}
	return e.CreationTimestamp.Time
}

func (c Cluster) leases(ctx context.Context, to *Archive) error {
	list, err := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return err
	}
	found := map[string]any{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].Spec
	}
	to.JSON("leases.json", "Leases in the namespace "+c.Namespace+": who leads", found)
	return nil
}

// pod is what a bundle has of a pod of the manager: its environment and its volumes may hold secrets.
type pod struct {
	Name   string           `json:"name"`
	Node   string           `json:"node"`
	Images []string         `json:"images"`
	Args   []string         `json:"args"`
	Status corev1.PodStatus `json:"status"`
}

// pods adds the pods of the manager, their logs, and the writes in these.
func (c Cluster) pods(ctx context.Context, to *Archive) error {
	list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: c.Selector, Limit: maxObjects})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("namespace %s has no pod with the labels %s", c.Namespace, c.Selector)
	}
	found, writes := []pod{}, ""
	for i := range list.Items {
		p := &list.Items[i]
		one := pod{Name: p.Name, Node: p.Spec.NodeName, Status: p.Status}
		for _, container := range p.Spec.Containers {
			one.Images, one.Args = append(one.Images, container.Image), append(one.Args,
				append(slices.Clone(container.Command), container.Args...)...)
			writes += c.logs(ctx, to, p.Name, container.Name)
		}
		found = append(found, one)
		c.metrics(ctx, to, p)
	}
	to.JSON("pods.json", "pods of the manager", found)
	to.Text("writes.txt", fmt.Sprintf("what the manager wrote to the cloud in the last %s, from its logs", Since), writes)
	return nil
}

func (c Cluster) metrics(ctx context.Context, to *Archive, p *corev1.Pod) {
	name := "metrics/" + p.Name + ".txt"
	if text, err := c.Metrics(ctx, p.Status.PodIP); err != nil {
		to.Missing(name, err)
	} else {
		to.Text(name, "metrics", text)
	}
}

// logs adds the log of a container, and of the one before if it restarted, and returns the lines about writes.
func (c Cluster) logs(ctx context.Context, to *Archive, podName, container string) (writes string) {
	for _, previous := range []bool{false, true} {
		name := "logs/" + podName + ".log"
		if previous {
			name = "logs/" + podName + ".previous.log"
		}
		text, err := c.log(ctx, podName, &corev1.PodLogOptions{
			Container: container, Previous: previous, SinceSeconds: new(int64(Since.Seconds())), LimitBytes: new(int64(maxLog)), Timestamps: true,
		})
		switch {
		case err == nil:
			to.Text(name, fmt.Sprintf("log of the last %s", Since), text)
		case !previous:
			to.Missing(name, err)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, c.Write) {
				writes += podName + " " + line
			}
		}
	}
	return writes
}

func (c Cluster) log(ctx context.Context, podName string, options *corev1.PodLogOptions) (string, error) {
	stream, err := c.Kube.CoreV1().Pods(c.Namespace).GetLogs(podName, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}
