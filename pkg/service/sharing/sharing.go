package sharing

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Port is a port of a load balancer. TCP and UDP have ports of their own.
type Port struct {
	Number int32
	UDP    bool
}

// Service is one Service of a group.
type Service struct {
	UID     types.UID
	Name    types.NamespacedName
	Created time.Time
	Ports   []Port
	// Overflow says that the Service may be on another load balancer of the group than the others.
	Overflow bool
	// At is the load balancer that the Service is on, empty while it is on none of the group's.
	At string
	// Stays says that no new load balancer can be created for the Service. Rather than that, it stays where it is.
	Stays bool
	// Unfit says that an annotation of the Service is not accepted on which a new load balancer depends: others decide on the attributes.
	Unfit bool
}

// LoadBalancer is one load balancer of a group.
type LoadBalancer struct {
	ID string
	// Foreign are the ports that somebody outside of the group has.
	Foreign []Port
	// Most is how many listeners it has room for, 0 for any number.
	Most int
	// Public says that it faces the internet.
	Public bool
}

// Place is where a Service is, or is to be.
type Place struct {
	// ID is the load balancer, empty for a new one.
	ID string
	// Leader is the Service whose annotations decide on the attributes of the load balancer, empty for none.
	Leader types.UID
	// Taken are ports that the Service does not get, with the Service that has them; the zero name is somebody outside of the group.
	Taken map[Port]types.NamespacedName
	// Full says that the load balancer has no room for the Service, which gets no port.
	Full bool
	// Services is how many Services are on the load balancer, and Listeners how many listeners those want together.
	Services, Listeners int
}

// Decide returns the place of one of the Services of a group, on one of its load balancers. New ones have room for most listeners.
//
// A Service stays on the load balancer that it is on. A port belongs to the oldest Service that wants it there. Where a port is taken, or
// there is no room, a Service that may overflow goes to another load balancer of the group, if need be a new one; any other Service goes
// without, and so does one that stays although it may overflow. The first load balancer is the one of the oldest Service.
func Decide(services []Service, balancers []LoadBalancer, most int, of types.UID) Place {
	d := &decision{most: most, places: map[types.UID]Place{}, at: map[types.UID]*balancer{}}
	d.prepare(services, balancers)
	d.settle()
	d.overflow()
	place := d.places[of]
	if on := d.at[of]; on != nil {
		place.ID, place.Leader, place.Services, place.Listeners = on.ID, on.leader(), len(on.services), on.placed-len(on.Foreign)
	}
	return place
}

// Before reports whether a Service is older than another one. Of two that were created in the same second, the UID decides.
func Before(a, b *Service) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

type decision struct {
	services  []Service
	balancers []*balancer
	most      int
	places    map[types.UID]Place
	at        map[types.UID]*balancer
	// later are Services that may go to any of the load balancers, in their order.
	later []Service
}

// balancer is a load balancer under decision.
type balancer struct {
	LoadBalancer
	owners map[Port]types.NamespacedName
	// used is how many listeners those that are on it have together, and the older ones that were placed so far.
	used, placed int
	services     []Service
}

func (d *decision) prepare(services []Service, balancers []LoadBalancer) {
	d.services = slices.Clone(services)
	slices.SortFunc(d.services, func(a, b Service) int { return Before(&a, &b) })
	for _, lb := range balancers {
		on := &balancer{LoadBalancer: lb, owners: map[Port]types.NamespacedName{}, used: len(lb.Foreign), placed: len(lb.Foreign)}
		for _, port := range lb.Foreign {
			on.owners[port] = types.NamespacedName{}
		}
		d.balancers = append(d.balancers, on)
	}
	slices.SortFunc(d.balancers, func(a, b *balancer) int { return cmp.Compare(a.ID, b.ID) })
	for i := len(d.services) - 1; i >= 0; i-- {
		if on := d.of(d.services[i].At); on != nil {
			on.used += len(d.services[i].Ports)
			d.first(on) // that of the oldest one in the end
		}
	}
}

// first has a load balancer tried before the others.
func (d *decision) first(on *balancer) {
	d.balancers = slices.DeleteFunc(d.balancers, func(b *balancer) bool { return b == on })
	d.balancers = slices.Insert(d.balancers, 0, on)
}

// of returns a load balancer of the group, nil for none.
func (d *decision) of(id string) *balancer {
	at := slices.IndexFunc(d.balancers, func(b *balancer) bool { return id != "" && b.ID == id })
	if at < 0 {
		return nil
	}
	return d.balancers[at]
}

// home is the load balancer of Services that do not overflow.
func (d *decision) home() *balancer {
	if len(d.balancers) == 0 {
		return d.open()
	}
	return d.balancers[0]
}

// open adds a new load balancer.
func (d *decision) open() *balancer {
	on := &balancer{LoadBalancer: LoadBalancer{Most: d.most}, owners: map[Port]types.NamespacedName{}}
	d.balancers = append(d.balancers, on)
	return on
}

// settle places the Services that stay where they are, and those that have no choice.
func (d *decision) settle() {
	for _, s := range d.services {
		on := d.of(s.At)
		switch {
		case on == nil && s.Overflow:
			d.later = append(d.later, s)
		case on == nil:
			d.join(d.home(), s)
		case s.Overflow && (on.takes(s) || !on.fits(on.placed, s) && d.fitsAlone(s)):
			on.used -= len(s.Ports)
			d.later = append(d.later, s)
		default:
			d.put(on, s)
		}
	}
}

// fitsAlone reports whether a load balancer of its own would have room for the Service.
func (d *decision) fitsAlone(s Service) bool { return d.most == 0 || len(s.Ports) <= d.most }

// join places a Service that is to be on the first load balancer.
func (d *decision) join(home *balancer, s Service) {
	if !home.fits(home.used, s) {
		d.places[s.UID] = Place{ID: home.ID, Full: true, Taken: home.taken(s), Leader: home.leader()}
		return
	}
	home.used += len(s.Ports)
	d.put(home, s)
}

// overflow places the Services that may go to any load balancer.
func (d *decision) overflow() {
	for _, s := range d.later {
		at := slices.IndexFunc(d.balancers, func(b *balancer) bool { return !b.takes(s) && b.fits(b.used, s) })
		var on *balancer
		switch is := d.of(s.At); {
		case at >= 0:
			on = d.balancers[at]
		case s.Stays && is != nil:
			on = is
		default:
			on = d.open()
		}
		on.used += len(s.Ports)
		d.put(on, s)
	}
}

// put places a Service on a load balancer, without the ports that somebody else has.
func (d *decision) put(on *balancer, s Service) {
	d.places[s.UID], d.at[s.UID] = Place{Taken: on.taken(s)}, on
	for _, port := range s.Ports {
		if _, owned := on.owners[port]; !owned {
			on.owners[port] = s.Name
		}
	}
	on.placed += len(s.Ports)
	on.services = append(on.services, s)
}

// fits reports whether there is room for the Service beside so many listeners.
func (b *balancer) fits(listeners int, s Service) bool {
	return b.Most == 0 || listeners+len(s.Ports) <= b.Most
}

// taken returns the ports of the Service that somebody else has.
func (b *balancer) taken(s Service) map[Port]types.NamespacedName {
	var taken map[Port]types.NamespacedName
	for _, port := range s.Ports {
		if owner, ok := b.owners[port]; ok && owner != s.Name {
			if taken == nil {
				taken = map[Port]types.NamespacedName{}
			}
			taken[port] = owner
		}
	}
	return taken
}

func (b *balancer) takes(s Service) bool { return len(b.taken(s)) > 0 }

// leader is the oldest of the Services that may decide on the attributes.
func (b *balancer) leader() types.UID {
	oldest := types.UID("")
	var first *Service
	for i := range b.services {
		s := &b.services[i]
		if !s.Unfit && (first == nil || Before(s, first) < 0) {
			first, oldest = s, s.UID
		}
	}
	return oldest
}
