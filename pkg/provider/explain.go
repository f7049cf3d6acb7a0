package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// ExplainQuery is what [Cloud.Explain] is asked.
type ExplainQuery struct {
	Namespace, Service string
	// Node and Pod leave only what concerns this one; empty for all.
	Node, Pod string
}

// Explanation says why a Service has the load balancer and the backends that it has.
type Explanation struct {
	service.Explanation

	// Events are the last warnings about the Service, the newest first.
	Events []string `json:"events,omitempty"`

	onePod bool
}

// Empty reports whether the load balancer matches the Service and nothing is to be done.
func (e Explanation) Empty() bool { return e.InSync }

// Explain says why a Service has the load balancer and the backends that it has. It reads what [Cloud.Plan] reads, for one Service, and
// writes nothing. The informers given to SetInformers must have synced.
func (c *Cloud) Explain(ctx context.Context, query ExplainQuery) (Explanation, error) {
	c.onlyReads.Store(true)
	svc, err := c.engines.serviceOptions.Services.Lister().Services(query.Namespace).Get(query.Service)
	if apierrors.IsNotFound(err) {
		return Explanation{}, fmt.Errorf("Service %s/%s does not exist", query.Namespace, query.Service) //nolint:staticcheck // the name of a kind
	}
	if err != nil {
		return Explanation{}, fmt.Errorf("read the Service: %w", err)
	}
	c.readQuotaCenter(ctx)
	explained, err := c.engines.services.Explain(ctx, svc)
	if err != nil {
		return Explanation{}, err
	}
	found := Explanation{Explanation: explained, Events: c.warnings(ctx, svc), onePod: query.Pod != ""}
	if query.Node != "" {
		only := func(of BackendStates) BackendStates {
			return slices.DeleteFunc(of, func(b service.BackendState) bool { return b.Name != query.Node && b.Node != query.Node })
		}
		found.Nodes, found.Pods = only(found.Nodes), only(found.Pods)
		if len(found.Nodes) == 0 && explained.Product != "" {
			_, err = c.engines.serviceOptions.Nodes.Lister().Get(query.Node)
			if apierrors.IsNotFound(err) {
				return Explanation{}, fmt.Errorf("Node %s does not exist", query.Node) //nolint:staticcheck // the name of a kind
			}
		}
	}
	if query.Pod != "" {
		found.Pods = slices.DeleteFunc(found.Pods, func(b service.BackendState) bool { return b.Name != query.Pod })
		if len(found.Pods) == 0 {
			found.Pods = BackendStates{{
				Name: query.Pod, State: service.BackendOut,
				Reason: "no EndpointSlice of the Service names the pod: it does not exist, it has no address yet, or the selector of the Service does not match its labels",
			}}
		}
	}
	return found, nil
}

// BackendStates are some of an [Explanation].
type BackendStates = []service.BackendState

// readQuotaCenter has the quotas of the account count, where they may be read.
func (c *Cloud) readQuotaCenter(ctx context.Context) {
	if !c.readsQuotas() {
		return
	}
	for _, engine := range c.engines.serviceOptions.Engines {
		if found, err := c.client.ListProductQuotas(ctx, engine.Product().QuotaProduct); err == nil {
			c.engines.serviceOptions.Config.Quotas.Read(service.QuotaReadings(found))
		}
	}
}

// maxEvents is how many events are shown.
const maxEvents = 5

// warnings are the last warnings about a Service. The role of the manager need not allow to read events.
func (c *Cloud) warnings(ctx context.Context, svc *corev1.Service) []string {
	list, err := c.kube.CoreV1().Events(svc.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.uid": string(svc.UID), "type": corev1.EventTypeWarning,
	}.String()})
	if err != nil {
		return nil
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.UID != svc.UID || e.Type != corev1.EventTypeWarning
	})
	seen := func(e *corev1.Event) time.Time {
		return cmp.Or(e.LastTimestamp, metav1.NewTime(e.EventTime.Time), e.CreationTimestamp).Time
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return seen(&b).Compare(seen(&a)) })
	var texts []string
	for i := range events[:min(len(events), maxEvents)] {
		texts = append(texts, fmt.Sprintf("%s ago: %s: %s", ago(seen(&events[i])), events[i].Reason, events[i].Message))
	}
	return texts
}

// String returns the explanation for people, on one page.
func (e Explanation) String() string {
	var text strings.Builder
	at := ""
	if e.Address != "" {
		at = " at " + e.Address
	}
	switch {
	case e.Product == "":
		fmt.Fprintf(&text, "Service %s: no load balancer: %s\n", e.Service, e.Why)
		return text.String()
	case e.LoadBalancer == "":
		fmt.Fprintf(&text, "Service %s: no %s: %s\n", e.Service, e.Product, e.Why)
	default:
		fmt.Fprintf(&text, "Service %s: %s %s%s: %s\n", e.Service, e.Product, e.LoadBalancer, at, e.Why)
	}
	fmt.Fprintf(&text, "  %s\n", e.State)
	if e.Error != "" {
		fmt.Fprintf(&text, "  ! not everything could be read or planned: %s\n", e.Error)
	}
	for _, of := range e.Problems {
		fmt.Fprintf(&text, "  ! %s\n", of)
	}
	e.printBackends(&text)
	section := func(name string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&text, "\n%s:\n", name)
		}
		for _, line := range lines {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	section("Waiting", e.Waits)
	var steps []string
	for _, step := range e.Steps {
		steps = append(steps, step.String())
	}
	section("Next", steps)
	section("Quotas", e.Quotas)
	section("Events", e.Events)
	return text.String()
}

func (e Explanation) printBackends(text *strings.Builder) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	if len(e.Listeners) > 0 {
		fmt.Fprintln(table, "\nListeners:")
	}
	for _, listener := range e.Listeners {
		fmt.Fprintf(table, "  %s\t%s\n", listener.Listener, listener.State)
	}
	if e.Backends != "" {
		fmt.Fprintf(table, "\nBackends are %s:\n", e.Backends)
	}
	printStates(table, "node", e.Nodes)
	// With the policy Cluster, what there is to say about a pod that is in says its node.
	if e.onePod || len(e.Nodes) == 0 || slices.ContainsFunc(e.Pods, func(b service.BackendState) bool {
		return b.State != service.BackendIn
	}) {
		printStates(table, "pod", e.Pods)
	}
	// The writer below never fails.
	_ = table.Flush()
}

// namesShown is how many nodes or pods are named for which the same is true.
const namesShown = 8

// printStates prints one line for all backends with the same state and reason.
func printStates(table *tabwriter.Writer, kind string, all BackendStates) {
	type line struct{ state, reason string }
	var lines []line
	names := map[line][]string{}
	for i := range all {
		of := line{all[i].State, all[i].Reason}
		if names[of] == nil {
			lines = append(lines, of)
		}
		name := all[i].Name
		if all[i].ID != "" && all[i].ID != name {
			name += " (" + all[i].ID + ")"
		}
		names[of] = append(names[of], name)
	}
	order := []string{service.BackendIn, service.BackendJoining, service.BackendDraining, service.BackendLeaving, service.BackendOut}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.state), slices.Index(order, b.state)), len(names[b])-len(names[a]))
	})
	for _, of := range lines {
		shown := names[of]
		list := strings.Join(shown[:min(len(shown), namesShown)], ", ")
		if more := len(shown) - namesShown; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		count := fmt.Sprintf("%d %ss", len(shown), kind)
		if len(shown) == 1 {
			count = "1 " + kind
		}
		if of.reason != "" {
			list = of.reason + ": " + list
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", of.state, count, list)
	}
}
