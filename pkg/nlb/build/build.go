package build

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Input is everything that the desired model depends on.
type Input struct {
	backend.Facts

	Service *corev1.Service
	Params  annotation.Params
	Config  config.Config
	// ClusterID ends the marks of the Service.
	ClusterID string
	// Observed is the NLB as it is, nil for none.
	Observed *model.Model

	// Zones are those of a new NLB that neither the annotations nor the cloud-config name, see [Input.DiscoverZones].
	Zones []alicloud.NLBZone

	// Shared says that the Service shares its NLB with others of a group, nil for any other NLB.
	Shared *sharing.Shared

	// RemoveTags, LeaveGroups and RemoveCertificates were applied and are no longer asked for.
	RemoveTags, LeaveGroups, RemoveCertificates []string
}

// Backends says what the backends are made from.
func (in Input) Backends() backend.Input {
	family := discoveryv1.AddressTypeIPv4
	if in.backendFamily() == annotation.FamilyIPv6 {
		family = discoveryv1.AddressTypeIPv6
	}
	return backend.Input{
		Params: in.Params, Pods: in.usesPods(), Family: family, BothFamilies: in.backendFamily() == annotation.FamilyDual,
		Local: in.Service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal, ControlPlane: in.Config.ControlPlaneNodes,
		ByAddress: in.byAddress(), NLB: true, Facts: in.Facts,
	}
}

// byAddress reports whether pods are backends by their addresses alone: in groups of the type Ip, unless there is still one with network
// interfaces, which is to follow the endpoints until its listeners have left it.
func (in Input) byAddress() bool {
	return in.groupType() == alicloud.NLBIPGroup && (in.Observed == nil || !slices.ContainsFunc(in.Observed.Groups, func(g model.Group) bool {
		return slices.ContainsFunc(g.Servers, func(s alicloud.NLBServer) bool { return s.Type == alicloud.NLBServerENI })
	}))
}

// groupType is the type of the Service's server groups: that of those that are there while nobody knows which one is asked for.
func (in Input) groupType() string {
	if in.Params.Refused(annotation.ServerGroupType) && in.Observed != nil {
		if at := slices.IndexFunc(in.Observed.Groups, func(g model.Group) bool { return !g.Foreign }); at >= 0 {
			return in.Observed.Groups[at].Type
		}
	}
	return in.Params.Or(annotation.ServerGroupType, alicloud.NLBInstanceGroup)
}

// backendFamily is the annotation backend-ip-version as far as it has an effect.
func (in Input) backendFamily() string {
	if !in.dualStack() || !in.usesPods() {
		return annotation.FamilyIPv4
	}
	return in.Params.Or(annotation.BackendIPVersion, annotation.FamilyIPv4)
}

// usesPods reports whether addresses of pods are the backends.
func (in Input) usesPods() bool {
	return backend.OnPods(in.Params, in.Config.DefaultBackendENI, in.Service.Spec.Ports, in.podsNow)
}

// podsNow reports whether addresses of pods are the backends of the NLB as it is, and false where nothing says so.
func (in Input) podsNow() (pods, known bool) {
	if in.Observed == nil {
		return false, false
	}
	owner := mark.OwnerOf(in.Service, in.ClusterID)
	pods, known = backend.NamedForPods(in.Service.Spec.Ports, func(port string) bool {
		return slices.ContainsFunc(in.Observed.Groups, func(g model.Group) bool {
			return !g.Foreign && g.Name == owner.NLBGroupName(port, g.Protocol)
		})
	})
	if known {
		return pods, true
	}
	for i := range in.Observed.Groups {
		g := &in.Observed.Groups[i]
		for k := range g.Servers {
			if s := &g.Servers[k]; s.Description == g.Name && !g.Foreign || owner.OwnsNLB(s.Description) {
				pods, known = pods || s.Type == alicloud.NLBServerENI || s.Type == alicloud.NLBServerIP && !in.Nodes.HasAddress(s.IP), true
			}
		}
	}
	return pods, known
}

// dualStack reports whether the load balancer has IPv6 addresses, or is to have some.
func (in Input) dualStack() bool {
	if in.Observed != nil && in.Observed.LoadBalancer.AddressIPVersion != "" {
		return strings.EqualFold(in.Observed.LoadBalancer.AddressIPVersion, alicloud.NLBDualStack)
	}
	params := in.Params
	if in.Shared != nil {
		params = in.Shared.Params
	}
	return params.Get(annotation.IPVersion) == annotation.DualStackNLB
}

type builder struct {
	in       Input
	owner    mark.Owner
	resolver *backend.Resolver
	observed *model.Model
	model    *model.Model
	problems []problem.Problem
	// chosen are the protocols of the annotation protocol-port, ranges those of listener-port-range, joined the groups of
	// vgroup-port, by port of the Service.
	chosen map[int32]string
	ranges map[int32][2]int
	joined map[int32]string
	// unclear are ports for which protocol-port asks for something that is not accepted.
	unclear sets.Set[int32]
	// joinedTwice are ports to which vgroup-port gives two groups.
	joinedTwice sets.Set[int32]
}

func (b *builder) addProblem(reason, format string, args ...any) {
	b.problems = append(b.problems, problem.Newf(reason, format, args...))
}

// Build returns the desired model, and what the user should know about it.
func Build(in Input) (*model.Model, []problem.Problem) {
	b := &builder{
		in: in, owner: mark.OwnerOf(in.Service, in.ClusterID), resolver: backend.NewResolver(in.Backends()), observed: in.Observed,
		model: &model.Model{},
	}
	if b.observed == nil {
		b.observed = &model.Model{}
	}
	b.model.Reused, b.model.Override = b.observed.Reused, b.observed.Reused && in.Params.OverridesListeners()
	if b.model.Reused && !b.model.Override {
		b.addProblem(problem.ReasonListenersLeftAlone,
			"the Service does not manage the listeners of an existing NLB; to manage them, set %s: \"true\"", annotation.ForceOverrideListeners)
	}
	if vpc := b.observed.LoadBalancer.VPCID; b.model.Reused && vpc != "" && in.Config.VPCID != "" && vpc != in.Config.VPCID &&
		in.Params.Or(annotation.ServerGroupType, alicloud.NLBInstanceGroup) == alicloud.NLBInstanceGroup {
		b.addProblem(problem.ReasonAnnotationNoEffect,
			"%s: the NLB is in %s, where nodes and pods of %s are backend servers by their addresses only; use %s: %s",
			annotation.LoadBalancerID, vpc, in.Config.VPCID, annotation.ServerGroupType, alicloud.NLBIPGroup)
	}
	b.model.HoldCreation = in.Params.Refuses(annotation.ScopeCreation)
	b.model.HoldListeners = b.model.Reused && in.Params.Refused(annotation.ForceOverrideListeners)
	b.model.HoldRanges = in.Params.Refused(annotation.ListenerPortRange)
	b.buildAccess()
	b.sharedLoadBalancer()
	b.problems = append(b.problems, in.Shared.Full(len(in.Service.Spec.Ports))...)
	b.reportUnsupported()
	b.readPortChoices()
	for _, port := range in.Service.Spec.Ports {
		b.buildPort(port)
	}
	b.noteDead()
	b.problems = append(b.problems, b.resolver.Shortages()...)
	b.blockOverlaps()
	b.problems = append(b.problems, in.Backends().Unserved(in.Service.Spec.IPFamilies)...)
	if !problem.HasInvalid(b.problems) { // that is reported first
		b.problems = append(b.problems, in.Params.Idle(b.model.Protocols())...)
	}
	slices.SortStableFunc(b.model.Listeners, func(a, c model.Listener) int {
		first, _ := a.Span()
		from, _ := c.Span()
		return cmp.Or(cmp.Compare(first, from), cmp.Compare(a.Protocol, c.Protocol))
	})
	return b.model, b.problems
}

// reportUnsupported reports what asks for something that is not supported.
func (b *builder) reportUnsupported() {
	params := b.in.Params
	if version := params.Or(annotation.BackendIPVersion, annotation.FamilyIPv4); version != b.in.backendFamily() {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %s has no effect without %s: %s and %s: eni", annotation.BackendIPVersion, version,
			annotation.IPVersion, annotation.DualStackNLB, annotation.BackendType)
	}
	b.problems = append(b.problems, b.in.Backends().Ineffective()...)
	b.problems = append(b.problems, backend.StayOnPods(b.in.Params, b.in.Config.DefaultBackendENI, b.in.usesPods())...)
}

// readPortChoices reads the annotations that name ports.
func (b *builder) readPortChoices() {
	b.chosen, b.ranges, b.joined, b.unclear = map[int32]string{}, map[int32][2]int{}, map[int32]string{}, sets.Set[int32]{}
	params := b.in.Params
	for _, item := range annotation.ListOf(params, annotation.ProtocolPort) {
		protocol, text, _ := strings.Cut(item, ":")
		if port, ok := b.servicePort(annotation.ProtocolPort, item, text); ok {
			b.chooseProtocol(port, strings.ToUpper(protocol))
		}
	}
	for _, item := range annotation.ListOf(params, annotation.ListenerPortRange) {
		_, text, _ := strings.Cut(item, ":")
		if port, ok := b.servicePort(annotation.ListenerPortRange, item, text); ok {
			b.chooseRange(port, item)
		}
	}
	if !b.observed.Reused {
		return
	}
	ids, twice, problems := backend.JoinedGroups(params, b.in.Service.Spec.Ports)
	b.joinedTwice, b.problems = sets.New(twice...), append(b.problems, problems...)
	b.joined = ids
}

func (b *builder) buildPort(port corev1.ServicePort) {
	if found, ok := backend.CheckPort(port); !ok {
		b.problems = append(b.problems, found)
		return
	}
	if refused, problems := b.in.Shared.Refuses(port); refused {
		b.model.Taken, b.problems = append(b.model.Taken, port), append(b.problems, problems...)
		return
	}
	listener := model.Listener{NLBListener: alicloud.NLBListener{Port: int(port.Port), Protocol: string(port.Protocol)},
		ServicePort: port.Port, Transport: port.Protocol}
	if span, ok := b.ranges[port.Port]; ok {
		listener.Port, listener.StartPort, listener.EndPort = 0, span[0], span[1]
	}
	b.setProtocol(port, &listener)
	text := b.owner.NLBMark(listener.Ports(), listener.Protocol)
	listener.Description = &text
	group, ok := b.buildGroup(port, &listener)
	listener.Group = group.Name
	if ok {
		b.addGroup(group)
	} else {
		listener.Blocked = problem.ReasonSkipSyncBackends
	}
	b.listenerSettings(&listener)
	b.addFormerGroups(port, &listener, &group)
	b.model.Listeners = append(b.model.Listeners, listener)
}

// blockOverlaps blocks listeners on ranges that want a port of another listener. Nobody knows what they have to be, so that those that
// there are stay.
func (b *builder) blockOverlaps() {
	for i := range b.model.Listeners {
		for k := range i {
			first, second := &b.model.Listeners[k], &b.model.Listeners[i]
			if first.Overlaps(second) {
				for _, l := range []*model.Listener{first, second} {
					if l.Port == 0 {
						l.Blocked = problem.ReasonInvalidAnnotation
					}
				}
				b.model.HoldRanges = true
				b.addProblem(problem.ReasonInvalidAnnotation, "%s: the listeners %s and %s overlap", annotation.ListenerPortRange, first.Key(),
					second.Key())
			}
		}
	}
}

// addGroup adds the group of a port. Ports with the same target port share one.
func (b *builder) addGroup(group model.Group) {
	// The name of a foreign one is its id.
	i := slices.IndexFunc(b.model.Groups, func(g model.Group) bool { return g.Name == group.Name && g.Foreign == group.Foreign })
	if i < 0 {
		b.model.Groups = append(b.model.Groups, group)
		return
	}
	have := &b.model.Groups[i]
	have.Servers, have.Draining = backend.Join(have.Servers, group.Servers, serverKey), backend.Join(have.Draining, group.Draining, serverKey)
	have.Held = have.Held.Union(group.Held)
	switch {
	case !group.Doubt:
	case !have.Doubt:
		have.Doubt, have.Gone = true, group.Gone
	default:
		have.Gone = have.Gone.Intersection(group.Gone)
	}
}

func serverKey(s *alicloud.NLBServer) alicloud.NLBServerKey { return s.NLBServerKey }
