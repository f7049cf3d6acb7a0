package build

import (
	"cmp"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Input is everything that the wanted state of a Service depends on.
type Input struct {
	backend.Facts

	Service *corev1.Service
	Params  annotation.Params
	Config  config.Config
	// ClusterID is the one that the marks carry: that of the CLB which is there already, else the configured one.
	ClusterID string
	// RemoveTags are keys of tags, and RemoveDomains domains of extensions, that earlier passes wrote and that left the
	// annotations.
	RemoveTags, RemoveDomains []string
	// Scheduler is that of [driver.Record], as it was applied. Where the default is another one now, what it decides on follows.
	Scheduler string
	// Certificates are those that the annotations name, by id.
	Certificates map[string]Certificate
	// Now is when certificates are compared with.
	Now time.Time
	// Shared says that the Service shares its CLB with others of a group, nil for any other CLB.
	Shared *sharing.Shared
	// PortRoom is which ports the CLB has room for. The zero value refuses none.
	PortRoom backend.PortRoom
	// Observed is what the Service has on its CLB, nil where there is no CLB. What cannot change is taken from there, and what an
	// annotation that is not accepted decides on stays as it is there.
	Observed *model.Model
}

// Build returns the wanted state of a Service. A port that cannot be served is left out and reported; the others are served.
func Build(in Input) (*model.Model, []problem.Problem) {
	b := newBuilder(in)
	b.loadBalancer()
	b.reuseExisting()
	b.reportUnsupported()
	b.problems = append(b.problems, b.in.Backends().Ineffective()...)
	b.problems = append(b.problems, backend.StayOnPods(in.Params, in.Config.DefaultBackendENI, b.usesENIs())...)
	b.joinGroups()
	b.accessList()
	b.chooseProtocols()
	b.readForwards()
	b.model.Ports = sets.New[int]()
	for _, port := range in.Service.Spec.Ports {
		b.model.Ports.Insert(int(port.Port))
		b.buildPort(port)
	}
	if full := in.Shared.Full(len(in.Service.Spec.Ports)); len(full) > 0 {
		b.problems = append(b.problems, full...)
	} else {
		b.problems = append(b.problems, in.PortRoom.Problems()...)
	}
	b.problems = append(b.problems, b.resolver.Shortages()...)
	b.checkForwards()
	b.checkCertificates()
	b.reportUnserved()
	b.problems = append(b.problems, b.in.Backends().Unserved(b.in.Service.Spec.IPFamilies)...)
	if !problem.HasInvalid(b.problems) { // that is reported first
		b.problems = append(b.problems, b.in.Params.Idle(b.model.Protocols())...)
	}
	slices.SortStableFunc(b.model.Listeners, func(a, c model.Listener) int {
		return cmp.Or(cmp.Compare(a.Port, c.Port), cmp.Compare(a.Protocol, c.Protocol))
	})
	forwardsLast(b.model.Listeners)
	return b.model, b.problems
}

func newBuilder(in Input) *builder {
	return &builder{
		in: in, owner: mark.OwnerOf(in.Service, in.ClusterID), resolver: backend.NewResolver(in.Backends()),
		observed: cmp.Or(in.Observed, &model.Model{}), model: &model.Model{},
	}
}

// reuseExisting marks the model of an existing CLB (annotation id).
func (b *builder) reuseExisting() {
	if !b.observed.Reused {
		return
	}
	b.model.Reused = true
	b.model.Override = b.in.Params.OverridesListeners()
	if !b.model.Override {
		b.addProblem(problem.ReasonListenersLeftAlone,
			"the Service does not manage the listeners and attributes of an existing CLB; to manage them, set %s: \"true\"",
			annotation.ForceOverrideListeners)
	}
}

// reportUnsupported reports fields and annotations that ask for something that is not supported.
func (b *builder) reportUnsupported() {
	spec, params := b.in.Service.Spec, b.in.Params
	if spec.IPFamilyPolicy != nil && *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		b.addProblem(problem.ReasonFeatureNotSupported, "ipFamilyPolicy RequireDualStack: a CLB has one address family, %s (annotation %s)",
			b.in.ipVersion(), annotation.IPVersion)
	}
	if params.Get(annotation.BackendIPVersion) == annotation.FamilyIPv6 && !b.in.ipv6Backends() {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: ipv6 has no effect without %s: eni and %s: ipv6", annotation.BackendIPVersion,
			annotation.BackendType, annotation.IPVersion)
	}
}

// ipVersion is the address family of the CLB.
func (in Input) ipVersion() string {
	if in.Observed != nil && in.Observed.LoadBalancer.AddressIPVersion != "" {
		return in.Observed.LoadBalancer.AddressIPVersion
	}
	return in.Params.Or(annotation.IPVersion, annotation.FamilyIPv4)
}

// ipv6Backends reports whether the backends are IPv6 addresses of pods.
func (in Input) ipv6Backends() bool {
	return in.ipVersion() == annotation.FamilyIPv6 && in.usesInterfaces() &&
		in.Params.Get(annotation.BackendIPVersion) == annotation.FamilyIPv6
}

type builder struct {
	in       Input
	owner    mark.Owner
	resolver *backend.Resolver
	// observed is that of the input, empty where there is no CLB.
	observed *model.Model
	model    *model.Model
	problems []problem.Problem
	// joined are the groups of others that ports join, by port; joinedTwice are ports that the annotation gives two.
	joined      map[int32]string
	joinedTwice sets.Set[int32]
	// chosen are the protocols of the annotation protocol-port, by port; chosenTwice are ports that it gives two.
	chosen      map[int32]string
	chosenTwice sets.Set[int32]
	// forwarding maps the ports of http listeners that forward to the ports of https ones; forwardedTwice are ports that the
	// annotation gives two targets.
	forwarding     map[int]int
	forwardedTwice sets.Set[int]
}

func (b *builder) addProblem(reason, format string, args ...any) {
	b.problems = append(b.problems, problem.Newf(reason, format, args...))
}

// buildPort adds the listener and the group of one port of the Service.
func (b *builder) buildPort(port corev1.ServicePort) {
	if found, ok := backend.CheckPort(port); !ok {
		b.problems = append(b.problems, found)
		return
	}
	if b.conflictsInGroup(port) {
		return
	}
	group, ok := b.buildGroup(port)
	blocked := !ok
	if ok {
		group, blocked = b.joinGroup(port.Port, group)
		blocked = b.keepUndecided(&group) || blocked
	}
	switch {
	case !blocked:
		b.addGroup(group)
	case !b.followWhatIsThere(port) && !ok:
		return
	}
	protocol := b.protocolOf(port)
	key := alicloud.ListenerKey{Port: int(port.Port), Protocol: protocol}
	attributes, redirects := b.redirectAttributes(key)
	if redirects {
		group.Name = "" // a listener that redirects has no group
	} else {
		attributes = b.managedAttributes(protocol)
		b.followDefault(key, attributes)
	}
	listener := model.Listener{
		ListenerKey: key,
		Description: b.owner.PortMark(port.Port),
		Group:       group.Name,
		ServicePort: port.Protocol,
		Blocked:     blocked,
		UpdateOnly:  b.updateOnly(port.Port, protocol),
		Attributes:  attributes,
		Create:      b.creationAttributes(protocol),
	}
	if protocol == alicloud.ProtocolHTTPS {
		listener.Extensions = annotation.DomainExtensionsOf(b.in.Params)
	}
	b.addFormerGroups(port, &listener)
	b.model.Listeners = append(b.model.Listeners, listener)
}

// reportUnserved reports what becomes of the CLB of a Service none of whose ports can be served.
func (b *builder) reportUnserved() {
	switch {
	case len(b.model.Listeners)+len(b.model.Conflicts) > 0:
	case b.in.Observed == nil:
		b.addProblem(problem.ReasonFeatureNotSupported, "no port can be served, so no CLB is created")
	case b.observed.Reused:
		b.addProblem(problem.ReasonFeatureNotSupported, "no port can be served, so the CLB has no listeners of the Service")
	default:
		b.addProblem(problem.ReasonFeatureNotSupported,
			"no port can be served; the CLB keeps its address, has no listeners until a port can be served, and is deleted with the Service")
	}
}

// buildGroup returns the vServer group of a port. Two ports that share the node port share the group.
func (b *builder) buildGroup(port corev1.ServicePort) (model.Group, bool) {
	mark := b.owner.PortMark(port.NodePort)
	switch {
	case b.usesENIs():
		mark = b.owner.Mark(backend.TargetPort(port))
	case port.NodePort == 0:
		b.problems = append(b.problems, backend.WithoutNodePort(port))
		return model.Group{}, false
	}
	set, problems := b.resolver.Backends(port, mark)
	b.problems = append(b.problems, problems...)
	servers := b.buildServers(&set, mark)
	return model.Group{
		Name: mark, Backends: servers, Dead: b.deadInstances(mark, len(servers)),
		Draining: serversOf(slices.Values(set.Draining), len(set.Draining), mark), Doubt: set.Doubt, Gone: set.Gone, Held: set.Held,
		Counted: set.Counted && !b.in.defaultChanged(), Balances: set.Balances,
		KeepWeights: b.in.Params.Get(annotation.IgnoreWeightUpdate) == "on",
	}, true
}

// buildServers returns the backends of a group. While they are those that the group has, both share their memory: a group may have
// thousands, and most passes change none.
func (b *builder) buildServers(set *backend.Set, mark string) []alicloud.Backend {
	changesAny := b.in.Params.Invalid || b.observed.Reused && b.in.Params.JoinsGroups() // see join and keepUndecided
	if b.in.Observed != nil && !changesAny {
		if have := b.in.Observed.Group(mark); have != nil && len(have.Backends) == set.Len() && sameServers(set, have.Backends, mark) {
			return slices.Clip(have.Backends)
		}
	}
	return serversOf(set.All, set.Len(), mark)
}

// deadInstances returns the instances that take no traffic of a group that is to have so many backend servers, if these are fewer than it
// has.
func (b *builder) deadInstances(mark string, servers int) sets.Set[string] {
	if b.in.Observed == nil {
		return nil
	}
	have := b.in.Observed.Group(mark)
	if have == nil || len(have.Backends) <= servers {
		return nil
	}
	dead := sets.New[string]()
	for i := range have.Backends {
		if server := &have.Backends[i]; server.Type == alicloud.BackendECS && b.in.Nodes.Dead(server.ServerID) {
			dead.Insert(server.ServerID)
		}
	}
	return dead
}

func sameServers(set *backend.Set, have []alicloud.Backend, mark string) bool {
	i := 0
	for b := range set.All {
		if have[i] != serverOf(b, mark) {
			return false
		}
		i++
	}
	return true
}

// serversOf returns n backends as a CLB has them, with the mark of the group as their description.
func serversOf(backends iter.Seq[backend.Backend], n int, mark string) []alicloud.Backend {
	if n == 0 {
		return nil
	}
	servers := make([]alicloud.Backend, 0, n)
	for b := range backends {
		servers = append(servers, serverOf(b, mark))
	}
	return servers
}

func serverOf(b backend.Backend, mark string) alicloud.Backend {
	server := alicloud.Backend{
		BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: b.ID, ServerIP: b.IP, Port: b.Port},
		Weight:     b.Weight, Description: mark,
	}
	if b.Kind == backend.KindInterface {
		server.Type = alicloud.BackendENI
	}
	return server
}

// Backends is what the backends of the Service depend on.
func (in Input) Backends() backend.Input {
	family := discoveryv1.AddressTypeIPv4
	if in.ipv6Backends() {
		family = discoveryv1.AddressTypeIPv6
	}
	return backend.Input{
		Params: in.Params, Pods: in.usesInterfaces(), Local: in.Service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		Family: family, ControlPlane: in.Config.ControlPlaneNodes, Facts: in.Facts,
	}
}

func (b *builder) usesENIs() bool { return b.in.usesInterfaces() }

// usesInterfaces reports whether the backends are addresses of pods.
func (in Input) usesInterfaces() bool {
	return backend.OnPods(in.Params, in.Config.DefaultBackendENI, in.Service.Spec.Ports, in.interfacesNow)
}

// interfacesNow reports whether the backends are addresses of pods on the CLB as it is, and false where nothing says so.
func (in Input) interfacesNow() (pods, known bool) {
	if in.Observed == nil {
		return false, false
	}
	owner := mark.OwnerOf(in.Service, in.ClusterID)
	if pods, known = backend.NamedForPods(in.Service.Spec.Ports, func(port string) bool {
		return in.Observed.Group(owner.Mark(port)) != nil
	}); known {
		return pods, true
	}
	for i := range in.Observed.Groups {
		for _, b := range in.Observed.Groups[i].Backends {
			if owner.Owns(b.Description) {
				pods, known = pods || b.Type == alicloud.BackendENI, true
			}
		}
	}
	return pods, known
}
