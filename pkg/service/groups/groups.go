package groups

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Cloud is what groups need of a product. LB is a load balancer as the cloud shows it.
type Cloud[LB any] interface {
	// View returns what groups need to know of a load balancer.
	View(lb *LB) LoadBalancer
	// FindByTag returns the load balancers of one answer, which may be incomplete.
	FindByTag(ctx context.Context, tag alicloud.Tag) ([]LB, error)
	// Read returns a load balancer by its id, nil where it does not exist.
	Read(ctx context.Context, id string) (*LB, error)
	// Listeners returns the listeners of load balancers by the ids of those.
	Listeners(ctx context.Context, balancers []LB) (map[string][]Listener, error)
	// Shown returns the load balancer that the Service shows other than by its id, nil where nothing on it is the Service's.
	Shown(ctx context.Context, svc *corev1.Service, known presence.Presence) (*LB, error)
	// Claims reports whether something on a load balancer without an owner is the Service's, and whether it is one that exists without the
	// Service. On that of a group, only listeners and the status of the Service say so.
	Claims(ctx context.Context, svc *corev1.Service, lb *LB) (has, reused bool, err error)
	// Refuse is that of [driver.Engine], and Unshareable says why the Service cannot share a load balancer whose attributes are to be those
	// of the leader, nil where it can. lb is nil for a new one.
	Refuse(params annotation.Params) error
	Unshareable(svc *corev1.Service, params annotation.Params, group mark.Group, leader *corev1.Service, asked annotation.Params, lb *LoadBalancer) error
	// Params reads the annotations of a Service.
	Params(svc *corev1.Service) annotation.Params
	// TagKeys are those of the tags that annotations ask for.
	TagKeys(params annotation.Params) []string
	// Room is how many listeners a load balancer has room for, and how many of those that are there stay where they are more than that; the id
	// of a new one is empty.
	Room(id string) (most, stay int)
}

// LoadBalancer is a load balancer as far as groups are concerned.
type LoadBalancer struct {
	ID     string
	Name   string
	Tags   []alicloud.Tag
	Public bool
	// SecurityGroups are those that it is in.
	SecurityGroups []string
}

// Tag returns the value of a tag, false where there is none.
func (lb *LoadBalancer) Tag(key string) (value string, ok bool) {
	for _, tag := range lb.Tags {
		if tag.Key == key {
			return tag.Value, true
		}
	}
	return "", false
}

// Group returns the group whose Services share the load balancer, false for none.
func (lb *LoadBalancer) Group() (mark.Group, bool) {
	return mark.GroupOn(lb.Tags)
}

// Listener is a listener of a load balancer, with the mark on it.
type Listener struct {
	Port sharing.Port
	// Service and ClusterID are those of the mark; both are zero where there is none.
	Service   types.NamespacedName
	ClusterID string
}

// Groups decides for the Services of a product on which load balancer of their groups they are. All Services of a group take turns. Its
// fields are set before its first use.
type Groups[LB any] struct {
	Memory

	Cloud    Cloud[LB]
	Product  driver.Product
	Config   config.Config
	Services corelisters.ServiceLister
	Missing  *presence.Absences
	// Wake has a pass made over a Service; nil where nobody makes any.
	Wake func(types.NamespacedName)

	moves    refusal.Refusals[move]
	readings readings
	searches driver.Preloads[search[LB]] // by the marks of the groups
}

// On returns the load balancer of the group that a Service is on, empty while it has nothing on any of them.
func (g *Groups[LB]) On(group mark.Group, svc *corev1.Service) string {
	shown := ""
	if len(svc.Status.LoadBalancer.Ingress) > 0 {
		shown = svc.Labels[driver.LabelLoadBalancerID]
	}
	return g.In(group.Mark(), svc.UID, mark.ServiceName(svc), shown)
}

// placeOf returns the load balancer that a Service is on: as this process knows it, else as its label says.
func (g *Groups[LB]) placeOf(svc *corev1.Service) string {
	if id, ok := g.At(svc.UID); ok {
		return id
	}
	return svc.Labels[driver.LabelLoadBalancerID]
}

// Asked is [driver.AskedGroup].
func (g *Groups[LB]) Asked(svc *corev1.Service) (mark.Group, bool) {
	return driver.AskedGroup(g.Config, svc)
}

// Wanted returns the group that a Service is to be in. While its annotation is not accepted, it stays in that where it is, which is zero
// where this process does not know.
func (g *Groups[LB]) Wanted(svc *corev1.Service, params annotation.Params, is mark.Group) (mark.Group, bool) {
	if group, ok := g.Asked(svc); ok || !params.Refused(annotation.Group) {
		return group, ok
	}
	if !is.IsZero() {
		return is, true
	}
	record, _ := driver.RecordOn(svc)
	return mark.ParseGroup(record.Group)
}

// ParamsOf reads the annotations of a Service as far as the policy accepts them.
func (g *Groups[LB]) ParamsOf(svc *corev1.Service) annotation.Params {
	params, _ := g.Config.Policy.Restrict(svc.Namespace, g.Cloud.Params(svc))
	return params
}

// portsOf are the ports of a Service that a load balancer can serve.
func portsOf(svc *corev1.Service) []sharing.Port {
	ports := make([]sharing.Port, 0, len(svc.Spec.Ports))
	for _, port := range svc.Spec.Ports {
		if port.Protocol != corev1.ProtocolSCTP {
			ports = append(ports, sharing.Port{Number: port.Port, UDP: port.Protocol == corev1.ProtocolUDP})
		}
	}
	return ports
}

// foreignPorts are the ports of a load balancer that nobody in the group has.
func foreignPorts(listeners []Listener, members []*corev1.Service, clusterID string) []sharing.Port {
	names := map[types.NamespacedName]bool{}
	for _, member := range members {
		names[mark.ServiceName(member)] = true
	}
	foreign := map[sharing.Port]bool{}
	for _, listener := range listeners {
		if listener.ClusterID == clusterID && names[listener.Service] {
			continue
		}
		foreign[listener.Port] = true
	}
	return slices.Collect(maps.Keys(foreign))
}

// Done is what a plan has done to a load balancer of a group.
type Done struct {
	// Removes says that the removal of the load balancer was begun, and Protected that its deletion protection is on.
	Removes, Protected bool
	// Ports are those on which the Service has listeners now, and Freed those of the listeners that the plan deletes.
	Ports, Freed []sharing.Port
	// Listens says that the plan creates a listener, or that another Service has a port which is to be this one's.
	Listens bool
	// Admits is what has changed for all Services that may not be on the load balancer yet, empty for nothing.
	Admits string
	// Deleted says that the deletion of the load balancer was accepted.
	Deleted bool
	// OnlyBackends says that no more was changed than backend servers.
	OnlyBackends bool
}

// Deployed notes what a plan has done to the load balancer of a group, and has passes made over the Services that may have waited for it.
func (g *Groups[LB]) Deployed(svc *corev1.Service, at Current[LB], done Done) {
	id := at.id()
	if len(done.Ports) > 0 && at.Former == "" {
		g.Put(svc.UID, id)
	}
	if !done.OnlyBackends {
		g.dropSearch(at.Group)
	}
	g.Note(at.Group.Mark(), func(known *sharing.State) {
		known.NoteProtection(id, done.Removes, done.Protected)
		known.MaybeCreated = known.MaybeCreated || id == "" && at.Presence.MaybeCreated()
		known.NoteListeners(mark.ServiceName(svc), id, done.Ports)
		if id != "" && !known.Has(id) {
			known.LoadBalancers = append(slices.Clone(known.LoadBalancers), sharing.LoadBalancer{ID: id})
		}
	})
	if done.Deleted {
		g.Lost(at.Group, id)
	}
	switch {
	case done.Admits != "":
		g.WakeAll(at.Group, svc, done.Admits)
	case done.Listens, len(done.Freed) > 0:
		g.WakeConcerned(at.Group, svc, id, done.Freed)
	}
}

// LockOf names the lock of a group.
func LockOf(group mark.Group) string { return "group " + group.Mark() }

// Shared returns what it means for a Service that it shares the load balancer of a group, nil for one that is in none. It fails for a
// Service without a listener there that may have none.
func (g *Groups[LB]) Shared(svc *corev1.Service, at Current[LB], hasListener bool) (*sharing.Shared, error) {
	group := at.Group
	if group.IsZero() {
		return nil, nil
	}
	place, own, leader, err := g.decidePlace(group, svc)
	if err != nil {
		return nil, err
	}
	if err = g.noteStanding(group, svc); err != nil {
		return nil, err
	}
	shared := &sharing.Shared{
		Group: group, Place: place, Product: g.Product.Name, Room: g.roomText(place.ID), Leads: leader.UID == svc.UID && at.Stays.In(group),
		Leader: leader.Service, Params: leader.params,
	}
	if hasListener {
		return shared, nil
	}
	var view *LoadBalancer
	if at.LB != nil {
		view = g.viewOf(at.LB)
	}
	return shared, g.refusesSharing(own, group, leader, view)
}

// TagsOfNobody returns those of the tag keys that a Service has set which leaves the group, and that no other Service asks for.
func (g *Groups[LB]) TagsOfNobody(group mark.Group, svc *corev1.Service, keys []string) []string {
	members, err := g.groupMembers(group, svc)
	if err != nil {
		return nil
	}
	for i := range members {
		if members[i].UID != svc.UID {
			asked := g.Cloud.TagKeys(members[i].params)
			keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(asked, key) })
		}
	}
	return keys
}

// TagsNotAskedFor returns those of the tag keys that no other Service asks for on the same existing load balancer.
func (g *Groups[LB]) TagsNotAskedFor(svc *corev1.Service, id string, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	services, err := g.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	for _, other := range services {
		if other.UID == svc.UID || !driver.NamesByID(other, id) || !g.Product.AskedBy(g.Config, other) {
			continue // reading all annotations of all Services would take long
		}
		if params := g.Cloud.Params(other); params.Get(annotation.LoadBalancerID) == id {
			asked := g.Cloud.TagKeys(params)
			keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(asked, key) })
		}
	}
	return keys, nil
}

// Lost notes that a load balancer of the group is gone, or about to be.
func (g *Groups[LB]) Lost(group mark.Group, id string) {
	g.Note(group.Mark(), func(known *sharing.State) {
		known.LoadBalancers = slices.DeleteFunc(slices.Clone(known.LoadBalancers), func(lb sharing.LoadBalancer) bool { return lb.ID == id })
		for name := range known.On {
			known.NoteListeners(name, id, nil)
		}
	})
	g.dropSearch(group)
	g.forgetBalancer(id)
	g.Missing.Forget(types.UID(group.Mark()))
}
