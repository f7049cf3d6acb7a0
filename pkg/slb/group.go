package slb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// leastPerPort is how many backend servers each port of a Service has room for on a CLB that it shares.
const leastPerPort = 4

// inGroup returns the CLB of the group that a Service is on, empty while it has nothing on any of them.
func (e *engine) inGroup(group mark.Group, svc *corev1.Service) string {
	shown := ""
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		shown = svc.Labels[service.LabelLoadBalancerID]
	}
	return e.shared.In(group.Mark(), svc.UID, mark.ServiceName(svc), shown)
}

// placeOf returns the CLB that a Service is on: as this process knows it, else as its label says.
func (e *engine) placeOf(svc *corev1.Service) string {
	if id, ok := e.shared.At(svc.UID); ok {
		return id
	}
	return svc.Labels[service.LabelLoadBalancerID]
}

// groupOf returns the group that a Service asks for and may join, false for none.
func (e *engine) groupOf(svc *corev1.Service) (mark.Group, bool) {
	namespace, name, ok := annotation.GroupOf(svc)
	if !ok || !e.config.Policy.AllowsGroup(svc.Namespace, namespace, name) {
		return mark.Group{}, false
	}
	return mark.Group{ClusterID: e.config.ClusterID, Namespace: namespace, Name: name}, true
}

// groupWanted returns the group that a Service is to be in. While its annotation is not accepted, it stays where it is.
func (e *engine) groupWanted(svc *corev1.Service, params annotation.Params, known observed) (mark.Group, bool) {
	if group, ok := e.groupOf(svc); ok || !params.Refused(annotation.Group) {
		return group, ok
	}
	if !known.group.IsZero() {
		return known.group, true
	}
	record, _ := service.RecordOn(svc)
	return mark.ParseGroup(record.Group)
}

// members returns the Services of a group. svc is among them as the pass has it, which the cache may lag behind.
func (e *engine) members(group mark.Group, svc *corev1.Service) ([]*corev1.Service, error) {
	all, err := e.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	found := []*corev1.Service{svc}
	for _, other := range all {
		if other.UID == svc.UID || mark.ServiceName(other) == mark.ServiceName(svc) || !e.wants(other) {
			continue
		}
		if in, ok := e.groupOf(other); ok && in.Is(group) {
			found = append(found, other)
		}
	}
	return found, nil
}

// decide returns the place of a Service in its group, and the Service whose annotations decide on the attributes of the CLB there. A Service that
// had no pass yet takes no port from others: it may never have one.
func (e *engine) decide(group mark.Group, svc *corev1.Service) (sharing.Place, *corev1.Service, error) {
	members, err := e.members(group, svc)
	if err != nil {
		return sharing.Place{}, nil, err
	}
	services := make([]sharing.Service, 0, len(members))
	for _, member := range members {
		one := sharing.Service{
			UID: member.UID, Name: mark.ServiceName(member), Created: member.CreationTimestamp.Time, Ports: portsOf(member), Overflow: annotation.Overflows(member),
			At: e.inGroup(group, member), Unfit: !e.mayLead(member, group),
		}
		one.Stays = e.overflowRefused(member, group, one.At) != nil
		if member != svc && !service.HasFinalizer(member, Finalizer) {
			one.Ports = nil
		}
		services = append(services, one)
	}
	state := e.shared.Of(group.Mark())
	place := sharing.Decide(services, state.For(mark.ServiceName(svc)), e.roomOf(""), svc.UID)
	i := slices.IndexFunc(members, func(m *corev1.Service) bool { return m.UID == place.Leader })
	if i < 0 {
		return place, svc, nil
	}
	return place, members[i], nil
}

// mayLead reports whether a new CLB of the group could follow the annotations of the Service. Those of one that only stays in the group are about
// another CLB.
func (e *engine) mayLead(svc *corev1.Service, group mark.Group) bool {
	if asks, in := e.groupOf(svc); !in || !asks.Is(group) {
		return false
	}
	params := e.paramsOf(svc)
	return !params.Refuses(annotation.ScopeCreation) && e.Refuse(params) == nil
}

// paramsOf reads the annotations of a Service as far as the policy accepts them.
func (e *engine) paramsOf(svc *corev1.Service) annotation.Params {
	params, _ := annotation.Of(svc)
	params, _ = e.config.Policy.Restrict(svc.Namespace, params)
	return params
}

// roomOf is how many listeners a CLB has room for: as many as the quotas leave, with some backend servers for each.
func (e *engine) roomOf(id string) int {
	listeners, backends := e.config.Quotas.Of(quota.ListenersPerCLB, id).Value, e.config.Quotas.Limit(quota.BackendsPerCLB).Value
	return max(min(listeners, backends/leastPerPort), 1)
}

// portsOf are the ports of a Service that a CLB can serve.
func portsOf(svc *corev1.Service) []sharing.Port {
	ports := make([]sharing.Port, 0, len(svc.Spec.Ports))
	for _, port := range svc.Spec.Ports {
		if port.Protocol != corev1.ProtocolSCTP {
			ports = append(ports, sharing.Port{Number: port.Port, UDP: port.Protocol == corev1.ProtocolUDP})
		}
	}
	return ports
}

// foreignPorts are the ports of a CLB that nobody in the group has.
func foreignPorts(listeners []alicloud.Listener, members []*corev1.Service, clusterID string) []sharing.Port {
	names := map[types.NamespacedName]bool{}
	for _, member := range members {
		names[mark.ServiceName(member)] = true
	}
	foreign := map[sharing.Port]bool{}
	for i := range listeners {
		if name, marked, ok := mark.Parse(listeners[i].Description); ok && marked == clusterID && names[name] {
			continue
		}
		foreign[portOf(&listeners[i])] = true
	}
	return slices.Collect(maps.Keys(foreign))
}

func portOf(listener *alicloud.Listener) sharing.Port {
	return sharing.Port{Number: int32(listener.Port), UDP: listener.Protocol == alicloud.ProtocolUDP} //nolint:gosec // a port
}

// sharedWith returns what it means for the Service that it shares its CLB, nil where it does not.
func (c *clb) sharedWith(svc *corev1.Service) (*build.Shared, error) {
	if c.group.IsZero() {
		return nil, nil
	}
	state := c.shared.Of(c.group.Mark())
	place, leader, err := c.decide(c.group, svc)
	if err != nil {
		return nil, err
	}
	c.leader, c.lost = leader.UID, state.Others()
	params := c.paramsOf(leader)
	shared := &build.Shared{Group: c.group, Place: place, Leads: leader.UID == svc.UID && c.stays.in(c.group), Leader: leader, Params: params}
	return shared, c.exposes(svc, shared)
}

// exposes is [engine.exposedBy] for the CLB that the Service is about to get its first listener on.
func (c *clb) exposes(svc *corev1.Service, shared *build.Shared) error {
	have := shared.Params.AddressType()
	if c.ID() != "" {
		have = c.loadBalancer.Value.AddressType
	}
	owner := mark.OwnerOf(svc, c.group.ClusterID)
	serves := slices.ContainsFunc(c.listeners.Value, func(l model.Listener) bool { return owner.Owns(l.Description) })
	if serves {
		return nil
	}
	return c.exposedBy(svc, shared.Group, have)
}

// token makes the client token of the creation of a CLB. Of the Services of a group, each makes the same one.
func (c *clb) token(svc *corev1.Service, lb alicloud.LoadBalancer) string {
	if c.group.IsZero() {
		return deploy.Token(svc.UID, cmp.Or(c.presence.ID(), strings.Join(c.left, " ")), lb)
	}
	return deploy.Token(types.UID(c.group.Mark()+" "+string(c.leader)), c.lost, lb)
}

// noteInGroup notes what a plan has done to a CLB of a group, and has passes made over the Services that may have waited for it.
func (c *clb) noteInGroup(svc *corev1.Service, done model.Plan) {
	if c.group.IsZero() {
		return
	}
	id := c.ID()
	owner := mark.OwnerOf(svc, c.group.ClusterID)
	if slices.ContainsFunc(c.listeners.Value, func(l model.Listener) bool { return owner.Owns(l.Description) }) {
		c.shared.Put(svc.UID, id)
	}
	did := func(op model.Op) bool {
		return slices.ContainsFunc(done.Steps, func(s model.Step) bool { return s.Op == op })
	}
	c.shared.Note(c.group.Mark(), func(known *sharing.State) {
		known.NoteProtection(id, did(model.OpDeleteLoadBalancer) && did(model.OpSetProtection), c.loadBalancer.Value.DeleteProtection == alicloud.ProtectionOn)
		known.MaybeCreated = known.MaybeCreated || id == "" && c.presence.MaybeCreated()
		if id != "" && !known.Has(id) {
			known.LoadBalancers = append(slices.Clone(known.LoadBalancers), sharing.LoadBalancer{ID: id, Most: c.roomOf(id)})
		}
	})
	if did(model.OpCreateListener) || did(model.OpDeleteListener) || problem.HasReason(done.Problems, problem.ReasonListenerConflict) {
		c.wakeGroup(svc)
	}
}

// wakeGroup has passes made over the other Services of the group.
func (c *clb) wakeGroup(svc *corev1.Service) {
	members, err := c.members(c.group, svc)
	if c.wake == nil || err != nil {
		return
	}
	for _, member := range members {
		if member.UID != svc.UID {
			c.wake(mark.ServiceName(member))
		}
	}
}

// crowdedFor is how long the Services of a group have to give up backend servers for one that comes, before it is an error.
const crowdedFor = time.Minute

// crowdedWait is how soon the Service that comes tries again.
const crowdedWait = 2 * time.Second

// waitsForOthers turns the refusal of backend servers into a wait while others on the CLB may be about to give up some.
func (c *clb) waitsForOthers(svc *corev1.Service, err error) error {
	if c.group.IsZero() || !deploy.IsOverQuota(err) {
		c.crowdedSince = time.Time{}
		return err
	}
	if c.crowdedSince.IsZero() {
		c.crowdedSince = time.Now()
	}
	if time.Since(c.crowdedSince) >= crowdedFor {
		return err
	}
	c.wakeGroup(svc)
	return &problem.WaitError{Reason: "the other Services of load balancer group " + c.group.String() + " give up backend servers", For: crowdedWait}
}
