package sharing

import (
	"cmp"
	"maps"
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
	// Waits is the load balancer where the Service waits for a port or for room, empty for none.
	Waits string
	// Has is what the Service serves on: its listeners.
	Has Listed
	// Stays says that no new load balancer can be created for the Service. Rather than that, it stays where it is.
	Stays bool
	// Keeps says that the Service does not ask for the group, and keeps its listeners there until it has another place.
	Keeps bool
	// Elsewhere says that the Service is served outside of the group, and stays there unless it gets all its ports.
	Elsewhere bool
	// Bars reports whether the Service may have no listener on a load balancer whose attributes are those of the leader, nil for a new one.
	// Where it has listeners already, it is not asked. A nil function bars nothing.
	Bars func(lb *LoadBalancer, leader types.UID) bool
	// Unfit says that an annotation of the Service is not accepted on which a new load balancer depends: others decide on the attributes.
	Unfit bool
	// CreatesNone says that no new load balancer comes from the Service: the cloud refused one as the Service asks for it, or the Service is
	// paused. Others decide on the attributes of a new one.
	CreatesNone bool
}

// LoadBalancer is one load balancer of a group.
type LoadBalancer struct {
	ID string
	// Foreign are the ports that somebody outside of the group has.
	Foreign []Port
	// Most is how many listeners it has room for, 0 for any number.
	Most int
	// Stay is how many listeners of Services that are on it stay where they are more than Most.
	Stay int
	// Public says that it faces the internet, and SecurityGroups are those that it is in.
	Public         bool
	SecurityGroups []string
}

// Place is where a Service is, or is to be.
type Place struct {
	// ID is the load balancer, empty for a new one.
	ID string
	// Leader is the Service whose annotations decide on the attributes of the load balancer, empty for none.
	Leader types.UID
	// Taken are ports that the Service does not get.
	Taken map[Port]Owner
	// Full says that the load balancer has no room for the Service, which gets no port.
	Full bool
	// Others is how many listeners those have together that leave no room.
	Others int
	// TooLarge says that no load balancer has room for the Service.
	TooLarge bool
	// Kept says that the Service is where it is only because it has no other place to go to.
	Kept bool
	// Unused are the load balancers of the group that no Service is to be on, and that nobody has listeners on.
	Unused []string
	// Services is how many Services are on the load balancer, and Listeners how many listeners those want together.
	Services, Listeners int
}

// Lacks reports whether the Service does not get all its ports.
func (p *Place) Lacks() bool { return p.Full || len(p.Taken) > 0 }

// Decide returns the place of one of the Services of a group, on one of its load balancers. New ones have room for most listeners.
//
// A Service stays on the load balancer that it is on. A port belongs to the oldest Service that wants it there. Where a port is taken, or
// there is no room, a Service that may overflow goes to another load balancer of the group, if need be a new one; any other Service goes
// without. A Service that may overflow and has no other place to go to keeps its listeners, also on ports that an older one wants. The
// first load balancer is the one of the oldest Service.
func Decide(services []Service, balancers []LoadBalancer, most int, of types.UID) Place {
	d := decidePlaces(services, balancers, most)
	return d.placeOf(of, d.unusedBalancers())
}

// DecideAll returns the places of all Services of a group, see [Decide].
func DecideAll(services []Service, balancers []LoadBalancer, most int) map[types.UID]Place {
	d := decidePlaces(services, balancers, most)
	unused, all := d.unusedBalancers(), map[types.UID]Place{}
	for i := range services {
		all[services[i].UID] = d.placeOf(services[i].UID, unused)
	}
	return all
}

func decidePlaces(services []Service, balancers []LoadBalancer, most int) *decision {
	kept := map[types.UID]bool{}
	for {
		d := &decision{most: most, kept: kept, places: map[types.UID]Place{}, at: map[types.UID]*balancer{}}
		d.prepareServices(services, balancers)
		d.settleStaying()
		d.placeOverflow()
		if len(d.stuck) == 0 {
			return d
		}
		for _, uid := range d.stuck { // an older Service may have a place of its own because of a port of theirs
			kept[uid] = true
		}
	}
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
	later []*Service
	// kept are Services that keep what they have for want of another place, and stuck those that turned out to be.
	kept  map[types.UID]bool
	stuck []types.UID
}

// balancer is a load balancer under decision.
type balancer struct {
	LoadBalancer
	owners map[Port]*Service // nil for somebody outside of the group
	// used is how many listeners those that are on it have together, and the older ones that were placed so far.
	used, placed int
	services     []*Service
}

func (d *decision) prepareServices(services []Service, balancers []LoadBalancer) {
	d.services = slices.Clone(services)
	slices.SortFunc(d.services, func(a, b Service) int { return Before(&a, &b) })
	for _, lb := range balancers {
		on := &balancer{LoadBalancer: lb, owners: map[Port]*Service{}, used: len(lb.Foreign), placed: len(lb.Foreign)}
		for _, port := range lb.Foreign {
			on.owners[port] = nil
		}
		d.balancers = append(d.balancers, on)
	}
	slices.SortFunc(d.balancers, func(a, b *balancer) int { return cmp.Compare(a.ID, b.ID) })
	for i := len(d.services) - 1; i >= 0; i-- {
		if on := d.balancerByID(d.services[i].At); on != nil {
			on.used += len(d.services[i].Ports)
			d.tryFirst(on) // that of the oldest one in the end
		}
	}
	for _, on := range d.balancers {
		if on.Most > 0 {
			on.Most = max(on.Most, min(on.used, on.Stay))
		}
	}
	for i := range d.services {
		if s := &d.services[i]; d.kept[s.UID] {
			d.keepPorts(s)
		}
	}
}

// keepPorts gives a Service the ports on which it has listeners where it is, unless somebody else has listeners there, too, so that one of
// them is out of date.
func (d *decision) keepPorts(s *Service) {
	on := d.balancerByID(d.servingBalancer(s))
	if on == nil {
		return
	}
	for _, port := range s.Has[on.ID] {
		others := func(other Service) bool { return other.UID != s.UID && slices.Contains(other.Has[on.ID], port) }
		if _, owned := on.owners[port]; !owned && slices.Contains(s.Ports, port) && !slices.ContainsFunc(d.services, others) {
			on.owners[port] = s
		}
	}
}

// servingBalancer is the load balancer on which a Service serves, the one that it is on where it does not.
func (d *decision) servingBalancer(s *Service) string {
	if len(s.Has[s.At]) > 0 {
		return s.At
	}
	for _, id := range slices.Sorted(maps.Keys(s.Has)) {
		if d.balancerByID(id) != nil {
			return id
		}
	}
	return s.At
}

// unusedBalancers are the load balancers that no Service is to be on, and that nobody has listeners on.
func (d *decision) unusedBalancers() []string {
	var ids []string
	for _, on := range d.balancers {
		serves := func(s Service) bool { return len(s.Has[on.ID]) > 0 }
		if on.ID != "" && len(on.services)+len(on.Foreign) == 0 && !slices.ContainsFunc(d.services, serves) {
			ids = append(ids, on.ID)
		}
	}
	return ids
}

// placeOf returns the place of a Service.
func (d *decision) placeOf(of types.UID, unused []string) Place {
	place := d.places[of]
	place.Unused = unused
	if on := d.at[of]; on != nil {
		place.ID, place.Leader, place.Services, place.Listeners = on.ID, on.leaderUID(), len(on.services), on.placed-len(on.Foreign)
	}
	return place
}

// tryFirst has a load balancer tried before the others.
func (d *decision) tryFirst(on *balancer) {
	d.balancers = slices.DeleteFunc(d.balancers, func(b *balancer) bool { return b == on })
	d.balancers = slices.Insert(d.balancers, 0, on)
}

// balancerByID returns a load balancer of the group, nil for none.
func (d *decision) balancerByID(id string) *balancer {
	at := slices.IndexFunc(d.balancers, func(b *balancer) bool { return id != "" && b.ID == id })
	if at < 0 {
		return nil
	}
	return d.balancers[at]
}

// homeOf is the load balancer of a Service that does not overflow: the one where it waits already, else the first one.
func (d *decision) homeOf(s *Service) *balancer {
	if waits := d.balancerByID(s.Waits); waits != nil {
		return waits
	}
	if len(d.balancers) == 0 {
		return d.openBalancer()
	}
	return d.balancers[0]
}

// openBalancer adds a new load balancer.
func (d *decision) openBalancer() *balancer {
	on := &balancer{LoadBalancer: LoadBalancer{Most: d.most}, owners: map[Port]*Service{}}
	d.balancers = append(d.balancers, on)
	return on
}

// settleStaying places the Services that stay where they are, and those that have no choice.
func (d *decision) settleStaying() {
	for i := range d.services {
		s := &d.services[i]
		on := d.balancerByID(s.At)
		switch {
		case s.Keeps:
			d.putKeeping(on, s)
		case d.kept[s.UID] && on != nil:
			d.putService(d.balancerByID(d.servingBalancer(s)), s)
		case on == nil && s.Overflow:
			d.later = append(d.later, s)
		case on == nil:
			d.joinFirst(d.homeOf(s), s)
		case s.Overflow && (on.takesService(s) || !on.hasRoomFor(on.placed, s) && d.fitsAlone(s)), on.barsService(s):
			on.used -= len(s.Ports)
			d.later = append(d.later, s)
		default:
			d.putService(on, s)
		}
	}
}

// fitsAlone reports whether a load balancer of its own would have room for the Service.
func (d *decision) fitsAlone(s *Service) bool { return d.most == 0 || len(s.Ports) <= d.most }

// joinFirst places a Service that is to be on the first load balancer.
func (d *decision) joinFirst(home *balancer, s *Service) {
	if !home.hasRoomFor(home.used, s) {
		d.places[s.UID] = Place{ID: home.ID, Full: true, Others: home.used, TooLarge: !d.fitsAlone(s), Taken: home.takenPorts(s),
			Leader: home.leaderUID()}
		return
	}
	if s.Elsewhere && home.takesService(s) { // its other ports stay those of the Services that have them: nobody else would serve there
		d.places[s.UID] = Place{ID: home.ID, Taken: home.takenPorts(s), Leader: home.leaderUID()}
		return
	}
	home.used += len(s.Ports)
	d.putService(home, s)
}

// placeOverflow places the Services that may go to any load balancer.
func (d *decision) placeOverflow() {
	for _, s := range d.later {
		is := d.balancerByID(s.At)
		at := slices.IndexFunc(d.balancers, func(b *balancer) bool { return !b.takesService(s) && b.hasRoomFor(b.used, s) && !b.barsService(s) })
		var on *balancer
		switch {
		case at >= 0:
			on = d.balancers[at]
		case !d.fitsAlone(s) && is == nil:
			// No load balancer has room for all its ports. One more would stay empty, and the next choice would open the next one.
			d.places[s.UID] = Place{Full: true, TooLarge: true}
			continue
		case is != nil && (s.Stays || (&balancer{}).barsService(s)):
			d.stuck = append(d.stuck, s.UID)
			on = is
		default:
			on = d.openBalancer()
		}
		on.used += len(s.Ports)
		d.putService(on, s)
	}
}

// putService places a Service on a load balancer, without the ports that somebody else has.
func (d *decision) putService(on *balancer, s *Service) {
	d.places[s.UID], d.at[s.UID] = Place{Taken: on.takenPorts(s), Kept: d.kept[s.UID]}, on
	for _, port := range s.Ports {
		if _, owned := on.owners[port]; !owned {
			on.owners[port] = s
		}
	}
	on.placed += len(s.Ports)
	on.services = append(on.services, s)
}

// hasRoomFor reports whether there is room for the Service beside so many listeners.
func (b *balancer) hasRoomFor(listeners int, s *Service) bool {
	return b.Most == 0 || listeners+len(s.Ports) <= b.Most
}

// takenPorts returns the ports of the Service that somebody else has.
func (b *balancer) takenPorts(s *Service) map[Port]Owner {
	var taken map[Port]Owner
	for _, port := range s.Ports {
		owner, ok := b.owners[port]
		if !ok || owner == s {
			continue
		}
		if taken == nil {
			taken = map[Port]Owner{}
		}
		taken[port] = Owner{}
		if owner != nil {
			taken[port] = Owner{Name: owner.Name, Younger: Before(s, owner) < 0}
		}
	}
	return taken
}

func (b *balancer) takesService(s *Service) bool { return len(b.takenPorts(s)) > 0 }

// barsService reports whether the Service may have no listener on the load balancer, although it has some elsewhere.
func (b *balancer) barsService(s *Service) bool {
	if s.Bars == nil || len(s.Has) == 0 || len(s.Has[b.ID]) > 0 {
		return false
	}
	lb := &b.LoadBalancer
	if lb.ID == "" {
		lb = nil
	}
	return s.Bars(lb, b.leaderOf(append(slices.Clone(b.services), s)))
}

func (b *balancer) leaderUID() types.UID { return b.leaderOf(b.services) }

// leaderOf is the oldest of the Services that may decide on the attributes. While there is no load balancer, one from which
// none comes does not keep the others from one.
func (b *balancer) leaderOf(services []*Service) types.UID {
	var first *Service
	for _, s := range services {
		if fit := !s.Unfit && (!s.CreatesNone || b.ID != ""); fit && (first == nil || Before(s, first) < 0) {
			first = s
		}
	}
	if first == nil {
		return ""
	}
	return first.UID
}
