package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Explanation says why a Service has the load balancer and the backends that it has.
type Explanation struct {
	Service      string `json:"service"`
	Product      string `json:"product,omitempty"`
	LoadBalancer string `json:"loadBalancer,omitempty"`
	Address      string `json:"address,omitempty"`
	// Why says why it is this load balancer, or why there is none.
	Why string `json:"why"`
	// InSync says that the load balancer matches the Service and nothing is to be done, State what the Service's condition says.
	InSync bool   `json:"inSync"`
	State  string `json:"state"`
	// Backends says what the backends are.
	Backends  string          `json:"backends,omitempty"`
	Listeners []ListenerState `json:"listeners"`
	Nodes     []BackendState  `json:"nodes,omitempty"`
	Pods      []BackendState  `json:"pods,omitempty"`
	// Waits say what waits for what.
	Waits    []string      `json:"waits,omitempty"`
	Problems []string      `json:"problems,omitempty"`
	Steps    []driver.Step `json:"steps"`
	Quotas   []string      `json:"quotas,omitempty"`
	// Error is why not everything could be read or planned.
	Error string `json:"error,omitempty"`
}

// ListenerState is what there is of a listener.
type ListenerState struct {
	Listener string `json:"listener"`
	State    string `json:"state"`
}

// BackendState is whether a node or pod is a backend, and the one reason.
type BackendState struct {
	Name string `json:"name"`
	// ID is that of the instance of a node, or the address of a pod, and Node where the pod runs.
	ID   string `json:"id,omitempty"`
	Node string `json:"node,omitempty"`
	// State is one of [BackendIn] and so on.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// The states of backends.
const (
	BackendIn       = "in"       // it takes new connections
	BackendJoining  = "joining"  // it is to take them, and is not registered everywhere yet
	BackendDraining = "draining" // it is registered, and takes no new connections
	BackendLeaving  = "leaving"  // it is registered, and is to be removed
	BackendOut      = "out"
)

// Explain says why a Service has the load balancer and the backends that it has. It reads the cluster and the cloud as
// [Reconciler.PreviewAll] does, for this Service alone, and writes nothing. Of what other Services do without, it knows nothing.
func (r *Reconciler) Explain(ctx context.Context, svc *corev1.Service) (Explanation, error) {
	found := Explanation{Service: svc.Namespace + "/" + svc.Name, Listeners: []ListenerState{}, Steps: []driver.Step{}}
	if !r.opts.needsReconcile(svc) {
		found.Why, found.State, found.InSync = r.whyUnserved(svc), "this manager leaves the Service alone", true
		return found, nil
	}
	p, preview := r.newPreviewer(), Preview{Service: svc}
	err := p.planService(ctx, svc, &preview)
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	known := p.stateOf(svc)
	if preview.balancer == nil { // it could not be read or is not wanted: nodes and endpoints say something all the same
		preview.balancer = known.engine.Start()
		params, _ := p.readParams(known.engine, svc)
		gathered, _ := p.gatherBackends(ctx, driver.Inputs{Service: svc, Params: params}, known) //nolint:errcheck // what could be read is there
		preview.inputs = gathered.Inputs
	}
	product := known.engine.Product()
	found.Product, found.LoadBalancer, found.Address = product.Name, preview.balancer.ID(), preview.balancer.Address()
	var listeners []driver.Listening
	owned := false
	if plan, ok := preview.Plan.(driver.Described); ok {
		listeners, owned = plan.Describe(svc)
	}
	found.Why = p.whyThis(svc, &preview, owned)
	found.Steps = append(found.Steps, preview.Steps...)
	for _, of := range problem.ByReason(preview.Problems) {
		found.Problems = append(found.Problems, of.Reason+": "+of.Message)
	}
	found.Waits = waitsOf(svc, &preview, err)
	if err = unlessWaiting(err); err != nil {
		found.Error = err.Error()
	}
	var synced bool
	found.State, synced = stateText(svc)
	found.InSync = synced && err == nil && len(preview.Steps) == 0 && preview.Follow == ""
	for i := range listeners {
		found.Listeners = append(found.Listeners, ListenerState{listeners[i].Listener, listenerText(&listeners[i], preview.Steps)})
	}
	if svc.DeletionTimestamp == nil && r.opts.wantsBalancer(svc) {
		p.explainBackends(svc, &preview, listeners, &found)
	}
	found.Quotas = p.quotasOf(svc, product, preview.balancer)
	return found, nil
}

// whyUnserved says why a Service gets no load balancer of this manager.
func (r *Reconciler) whyUnserved(svc *corev1.Service) string {
	switch {
	case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Sprintf("spec.type is %s, not LoadBalancer", svc.Spec.Type)
	case svc.Annotations[driver.AnnotationClass] != "":
		return fmt.Sprintf("the annotation %s leaves it to another controller", driver.AnnotationClass)
	case r.opts.servedElsewhere(svc):
		return "a product that this manager does not serve has a load balancer for it (--controllers)"
	case svc.Spec.LoadBalancerClass != nil:
		return fmt.Sprintf("spec.loadBalancerClass %q is that of another controller, or of a product that this manager does not serve (--controllers)", *svc.Spec.LoadBalancerClass)
	}
	return "it is that of another controller, or of a product that this manager does not serve (--controllers)"
}

// whyThis says why the load balancer is the one of the Service.
func (p previewer) whyThis(svc *corev1.Service, preview *Preview, owned bool) string {
	id, asked := preview.balancer.ID(), preview.inputs.Params.Get(annotation.LoadBalancerID)
	group, grouped := driver.AskedGroup(p.opts.Config, svc)
	labeled := ""
	if id != "" && svc.Labels[driver.LabelLoadBalancerID] == id {
		labeled = fmt.Sprintf(", and the label %s names it", driver.LabelLoadBalancerID)
	}
	switch {
	case svc.DeletionTimestamp != nil:
		return "the Service is being deleted, and so is what it has in the cloud"
	case id == "" && asked != "":
		return fmt.Sprintf("the annotation %s names %s, which the Service does not use yet", annotation.LoadBalancerID, asked)
	case id == "":
		return "the Service has none yet"
	case asked == id:
		return fmt.Sprintf("the annotation %s names it%s", annotation.LoadBalancerID, labeled)
	case asked != "":
		return fmt.Sprintf("the annotation %s names %s, but the Service stays on this one", annotation.LoadBalancerID, asked)
	case grouped && !owned:
		return fmt.Sprintf("it is that of the load balancer group %s/%s, for which the annotation %s asks%s", group.Namespace, group.Name,
			annotation.Group, labeled)
	case owned:
		return "it is the Service's own: its owner tag has the UID of the Service" + labeled
	case preview.balancer.Reused():
		return "it is an existing one that the Service was on before" + labeled
	}
	return "what is on it carries the marks of the Service" + labeled
}

// waitsOf says what waits for what.
func waitsOf(svc *corev1.Service, preview *Preview, err error) []string {
	var texts []string
	var wait *problem.WaitError
	if errors.As(err, &wait) {
		texts = append(texts, fmt.Sprintf("%s; the manager looks again after %s", wait.Reason, wait.For.Round(time.Second)))
	}
	if preview.Follow != "" {
		texts = append(texts, preview.Follow)
	}
	for _, step := range preview.Steps {
		if step.Later != "" && !slices.Contains(texts, step.Later) {
			texts = append(texts, step.Later)
		}
	}
	record, _ := driver.RecordOn(svc)
	if preview.balancer.ID() == "" && record.Creation.Open() {
		texts = append(texts, fmt.Sprintf("a load balancer was asked for at %s, and the result is not known; the call is repeated until %s",
			record.Creation.Begun.UTC().Format(time.RFC3339), record.Creation.Begun.Add(waits.CreationRepeated).UTC().Format(time.RFC3339)))
	}
	for _, left := range record.Leaving {
		texts = append(texts, fmt.Sprintf("the Service leaves %s once its status shows the other load balancer", left))
	}
	return texts
}

// stateText is what the condition of a Service says.
func stateText(svc *corev1.Service) (text string, synced bool) {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionSynced)
	if condition == nil {
		return "no manager has reconciled the Service yet (no condition LoadBalancerSynced)", false
	}
	since := ""
	if !condition.LastTransitionTime.IsZero() {
		since = " since " + condition.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	if condition.Status == metav1.ConditionTrue {
		return fmt.Sprintf("in sync%s: %s", since, condition.Message), true
	}
	return fmt.Sprintf("not in sync%s: %s: %s", since, condition.Reason, condition.Message), false
}

// listenerText says what there is of a listener and what the next pass does with it.
func listenerText(l *driver.Listening, steps []driver.Step) string {
	text := cmp.Or(l.Status, "does not exist")
	switch {
	case l.Redirects:
		text += ", redirects"
	default:
		text += fmt.Sprintf(", %d of %s registered", registeredOf(l.Wanted, l.Registered), problem.Count(len(l.Wanted), "backend"))
	}
	for _, step := range steps {
		if step.Target == l.Listener {
			text += "; next: " + step.Text
		}
	}
	return text
}

func registeredOf(wanted, registered []string) int {
	n := 0
	for _, id := range wanted {
		if slices.Contains(registered, id) {
			n++
		}
	}
	return n
}

// explainBackends says of each node, or of each pod, whether it is a backend and why.
func (p previewer) explainBackends(svc *corev1.Service, preview *Preview, listeners []driver.Listening, to *Explanation) {
	in := preview.balancer.Backends(preview.inputs)
	resolver, serving := backend.NewResolver(in), servingOf(listeners)
	to.Backends = "nodes, at their node ports (externalTrafficPolicy " +
		string(cmp.Or(svc.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)) + ")"
	if in.Pods {
		to.Backends = "addresses of pods"
	} else {
		whyNot := resolver.WhyNot()
		for node := range in.Nodes.All {
			found := BackendState{Name: node.Name, ID: node.InstanceID}
			found.State, found.Reason = serving.backendState(whyNot(node), node.InstanceID, node.Address)
			to.Nodes = append(to.Nodes, found)
		}
	}
	all, err := p.endpointSlices(svc)
	if err != nil {
		return // it was read before
	}
	for _, slice := range all {
		for _, endpoint := range slice.Endpoints {
			to.Pods = append(to.Pods, p.explainPod(in, preview.inputs.Slices, resolver, serving, slice, endpoint, to.Nodes))
		}
	}
	slices.SortFunc(to.Pods, func(a, b BackendState) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	to.Pods = slices.Compact(to.Pods)
}

// explainPod says whether an endpoint is a backend. Where nodes are, it takes part by its node.
func (p previewer) explainPod(
	in backend.Input, checked []*discoveryv1.EndpointSlice, resolver *backend.Resolver, serving servingServers, slice *discoveryv1.EndpointSlice,
	endpoint discoveryv1.Endpoint, nodes []BackendState,
) BackendState {
	found := BackendState{Node: ptr.Deref(endpoint.NodeName, ""), State: BackendOut}
	if endpoint.TargetRef != nil {
		found.Name = endpoint.TargetRef.Name
	}
	if len(endpoint.Addresses) > 0 {
		found.ID = endpoint.Addresses[0]
	}
	found.Name = cmp.Or(found.Name, found.ID)
	at := slices.IndexFunc(nodes, func(node BackendState) bool { return node.Name == found.Node })
	switch {
	case backend.IsPodEndpoint(in, endpoint) && !slices.ContainsFunc(checked, func(s *discoveryv1.EndpointSlice) bool {
		return s.Name == slice.Name && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return slices.Equal(e.Addresses, endpoint.Addresses)
		})
	}):
		found.Reason = "the policy does not accept the address: no Pod of the namespace has it (endpointAddresses)"
	case backend.IsPodEndpoint(in, endpoint):
		found.State, found.Reason = serving.backendState(resolver.PodEndpointWhyNot(slice, endpoint), found.ID)
	case !ptr.Deref(endpoint.Conditions.Ready, true):
		found.Reason = "the endpoint is not ready"
	case in.Local && at < 0:
		found.Reason = "its node is unknown"
	case in.Local:
		found.State, found.Reason = nodes[at].State, "its node is a backend"
		if found.State != BackendIn {
			found.Reason = fmt.Sprintf("its node is %s: %s", found.State, nodes[at].Reason)
		}
	default:
		found.State, found.Reason = BackendIn, "connections reach it through every node that is a backend (externalTrafficPolicy Cluster)"
	}
	return found
}

// servingServers are the backends of all listeners together, by their IDs: on how many listeners each is wanted and so on.
type servingServers struct {
	listeners                    int
	wanted, draining, registered map[string]int
	doubt                        bool
}

func servingOf(listeners []driver.Listening) servingServers {
	s := servingServers{wanted: map[string]int{}, draining: map[string]int{}, registered: map[string]int{}}
	count := func(ids []string, to map[string]int) {
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			to[id]++
		}
	}
	for i := range listeners {
		if l := &listeners[i]; !l.Redirects {
			s.listeners++
			s.doubt = s.doubt || l.Doubt
			count(l.Wanted, s.wanted)
			count(l.Draining, s.draining)
			count(l.Registered, s.registered)
		}
	}
	return s
}

// backendState returns the state of a backend that has one of the IDs, and the reason. whyNot is the rule that leaves it out, "" for none.
func (s servingServers) backendState(whyNot string, ids ...string) (state, reason string) {
	wanted, draining, registered := 0, 0, 0
	for _, id := range ids {
		if id != "" {
			wanted, draining, registered = max(wanted, s.wanted[id]), max(draining, s.draining[id]), max(registered, s.registered[id])
		}
	}
	some := ""
	if wanted < s.listeners {
		some = fmt.Sprintf("on %d of %d listeners", wanted, s.listeners)
	}
	switch {
	case wanted > 0 && registered >= wanted:
		return BackendIn, some
	case wanted > 0:
		return BackendJoining, strings.TrimSpace(some + fmt.Sprintf(" it is registered on %d of %d listeners so far", registered, wanted))
	case registered > 0 && draining > 0:
		return BackendDraining, cmp.Or(whyNot, "it keeps the connections that it has")
	case registered > 0 && s.doubt:
		return BackendLeaving,
			cmp.Or(whyNot, "nothing wants it") + "; it stays for now, because the endpoints or nodes that are known may be incomplete"
	case registered > 0:
		return BackendLeaving, cmp.Or(whyNot, "nothing wants it")
	case whyNot == "" && s.listeners == 0:
		return BackendJoining, "nothing leaves it out, and there is no listener yet"
	}
	return BackendOut, cmp.Or(whyNot, "the load balancer has no room for it")
}

// quotasOf says how much of quotas the load balancer uses.
func (p previewer) quotasOf(svc *corev1.Service, product driver.Product, balancer driver.Balancer) []string {
	var codes []quota.Code
	used := map[quota.Code]int{}
	for _, use := range balancer.Uses() {
		if used[use.Code] += use.Used; !slices.Contains(codes, use.Code) {
			codes = append(codes, use.Code)
		}
	}
	var texts []string
	text := func(code quota.Code, used int, id, of string) {
		limit := p.opts.Config.Quotas.Of(code, id)
		texts = append(texts, fmt.Sprintf("%d of %d %s%s (%s; value: %s)", used, limit.Bound(used), code.Words(), of, code, limit.Origin(used)))
	}
	for _, code := range codes {
		if code.OfAccount() {
			text(code, used[code], "", ", of this Service alone")
		} else {
			text(code, used[code], balancer.ID(), "")
		}
	}
	if len(codes) > 0 {
		text(product.AttachmentQuota, product.AttachmentsOf(svc), "", ", of this Service alone for each node")
	}
	return texts
}
