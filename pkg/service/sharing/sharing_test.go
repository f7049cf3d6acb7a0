package sharing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// service makes a Service from text: name, age in the order of creation, ports, and where it is: "a 1 80,443 lb-1 overflow unfit stays
// elsewhere refused". It serves where it is if the text says so, "serves", or elsewhere, "serves=lb-2", and "bars=lb-2,new" are load balancers on
// which it may have no listener. "waits=lb-1" is where it waits for a port.
func service(text string) Service {
	fields := strings.Fields(text)
	var age int
	_, _ = fmt.Sscan(fields[1], &age)
	s := Service{
		UID: types.UID(fields[0]), Name: types.NamespacedName{Namespace: "ns", Name: fields[0]}, Created: time.Unix(int64(age), 0),
		Overflow: strings.Contains(text, "overflow"), Unfit: strings.Contains(text, "unfit"), Stays: strings.Contains(text, "stays"),
		Elsewhere: strings.Contains(text, "elsewhere"), CreatesNone: strings.Contains(text, "refused"),
	}
	for item := range strings.SplitSeq(fields[2], ",") {
		port := Port{UDP: strings.HasSuffix(item, "u")}
		_, _ = fmt.Sscan(strings.TrimSuffix(item, "u"), &port.Number)
		s.Ports = append(s.Ports, port)
	}
	for _, field := range fields[3:] {
		name, value, _ := strings.Cut(field, "=")
		switch {
		case strings.HasPrefix(field, "lb-"):
			s.At = field
		case name == "waits":
			s.Waits = value
		case name == "serves":
			if value == "" {
				value = s.At
			}
			s.Has = Listed{value: s.Ports[:1]}
		case name == "bars":
			s.Bars = func(lb *LoadBalancer, _ types.UID) bool {
				if lb == nil {
					lb = &LoadBalancer{ID: "new"}
				}
				return slices.Contains(strings.Split(value, ","), lb.ID)
			}
		}
	}
	return s
}

// balancer makes a load balancer from text: id, room, foreign ports: "lb-1 50 22".
func loadBalancer(text string) LoadBalancer {
	fields := strings.Fields(text)
	lb := LoadBalancer{ID: fields[0]}
	_, _ = fmt.Sscan(fields[1], &lb.Most)
	for _, field := range fields[2:] {
		var port Port
		_, _ = fmt.Sscan(field, &port.Number)
		lb.Foreign = append(lb.Foreign, port)
	}
	return lb
}

// shown is a place as text: "lb-1 led by a, 80 of b, full".
func shown(p Place) string {
	text := p.ID
	if text == "" {
		text = "new"
	}
	if p.Leader != "" {
		text += " led by " + string(p.Leader)
	}
	for _, number := range []int32{22, 53, 80, 81, 443} {
		for _, udp := range []bool{false, true} {
			if owner, taken := p.Taken[Port{number, udp}]; taken {
				name := owner.Name.Name
				if name == "" {
					name = "others"
				}
				if owner.Younger {
					name = "the younger " + name
				}
				text += fmt.Sprintf(", %d of %s", number, name)
			}
		}
	}
	if p.Full {
		text += ", full"
	}
	if p.Kept {
		text += ", kept"
	}
	return text
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		services  []string
		balancers []string
		want      []string
	}{
		{"the first Service makes a load balancer", []string{"a 1 80"}, nil, []string{"new led by a"}},
		{"two at once make one", []string{"b 2 81", "a 1 80"}, nil, []string{"new led by a", "new led by a"}},
		{"the UID decides in the same second", []string{"b 1 80", "a 1 80"}, nil, []string{"new led by a", "new led by a, 80 of a"}},
		{"a port is the oldest one's", []string{"a 1 80 lb-1", "b 2 80,81"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a, 80 of a"}},
		{"also of one that comes later", []string{"a 1 80", "b 2 80 lb-1"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a, 80 of a"}},
		{"TCP and UDP are two ports", []string{"a 1 53 lb-1", "b 2 53u"}, []string{"lb-1 50"}, []string{"lb-1 led by a", "lb-1 led by a"}},
		{"a port of somebody else's", []string{"a 1 22,80 lb-1"}, []string{"lb-1 50 22"}, []string{"lb-1 led by a, 22 of others"}},
		{"a conflict overflows", []string{"a 1 80 lb-1", "b 2 80 overflow"}, []string{"lb-1 50"}, []string{"lb-1 led by a", "new led by b"}},
		{"to one that is there", []string{"a 1 80 lb-1", "b 2 80 overflow", "c 3 81 lb-2"}, []string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a", "lb-2 led by b", "lb-2 led by b"}},
		{"two that overflow share", []string{"a 1 80 lb-1", "b 2 80 overflow", "c 3 80 overflow", "d 4 443,80 overflow"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "new led by b", "new led by c", "new led by d"}},
		{"without conflict they share one", []string{"a 1 80,81,443 lb-1", "b 2 80 overflow", "c 3 81 overflow"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "new led by b", "new led by b"}},
		{"one that is there moves for an older one", []string{"a 1 80", "b 2 80 lb-1 overflow"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "new led by b"}},
		{"one that stays goes without the port", []string{"a 1 80 lb-1", "b 2 80,81 lb-1 overflow stays"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a, 80 of a, kept"}},
		{"one that stays keeps its listener", []string{"a 1 80", "b 2 80,81 lb-1 overflow stays serves"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a, 80 of the younger b", "lb-1 led by a, kept"}},
		{"one that may be nowhere else keeps its listener", []string{"a 1 80", "b 2 80,81 lb-1 overflow serves bars=new,lb-2", "c 3 82 lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a, 80 of the younger b", "lb-1 led by a, kept", "lb-2 led by c"}},
		{"and takes no other port from an older one", []string{"a 1 80,81 lb-1", "b 2 80,81 lb-1 overflow serves bars=new"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a, 80 of the younger b", "lb-1 led by a, 81 of a, kept"}},
		{"a third one is older than that", []string{"a 1 80", "b 3 80 lb-1 overflow serves bars=new", "c 2 80", "d 4 80"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a, 80 of the younger b", "lb-1 led by a, kept", "lb-1 led by a, 80 of the younger b", "lb-1 led by a, 80 of b"}},
		{"an older one that may overflow does", []string{"a 1 80 lb-1 overflow", "b 2 80 lb-1 overflow serves bars=new"}, []string{"lb-1 50"},
			[]string{"new led by a", "lb-1 led by b, kept"}},
		{"one that may be on a new one only", []string{"a 1 80", "b 2 80 lb-1 overflow serves bars=lb-2", "c 3 81 lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a", "new led by b", "lb-2 led by c"}},
		{"one that may no longer go where it was about to", []string{"a 1 80 lb-1", "b 2 80 lb-2 overflow serves=lb-1 bars=new,lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a, 80 of the younger b", "lb-1 led by a, kept"}},
		{"one that serves where it was about to go", []string{"a 1 80 lb-1", "b 2 80 lb-2 overflow serves bars=new,lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a", "lb-2 led by b"}},
		{"no two keep one port", []string{"a 1 80 lb-1 serves", "b 2 80 lb-1 overflow serves bars=new"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a, 80 of a, kept"}},
		{"nothing keeps one that has no listener", []string{"a 1 80", "b 2 80 lb-1 overflow bars=new"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "new led by b"}},
		{"one that stays goes to one that is there", []string{"a 1 80 lb-1", "b 2 80 lb-1 overflow stays", "c 3 81 lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a", "lb-2 led by b", "lb-2 led by b"}},
		{"nothing to stay on", []string{"a 1 80 lb-1", "b 2 80 overflow stays"}, []string{"lb-1 50"}, []string{"lb-1 led by a", "new led by b"}},
		{"a newcomer that may overflow takes no port away", []string{"a 1 80 overflow", "b 2 80 lb-1"}, []string{"lb-1 50"},
			[]string{"new led by a", "lb-1 led by b"}},
		{"no room", []string{"a 1 80,81 lb-1", "b 2 443"}, []string{"lb-1 2"}, []string{"lb-1 led by a", "lb-1 led by a, full"}},
		{"no room for an older one either", []string{"a 1 443", "b 2 80,81 lb-1"}, []string{"lb-1 2"}, []string{"lb-1, full", "lb-1 led by b"}},
		{"no room overflows", []string{"a 1 80,81 lb-1", "b 2 443 overflow"}, []string{"lb-1 2"}, []string{"lb-1 led by a", "new led by b"}},
		{"one that has grown stays", []string{"a 1 80,81 lb-1", "b 2 443,22 lb-1"}, []string{"lb-1 3"},
			[]string{"lb-1 led by a", "lb-1 led by a"}},
		{"one that has grown moves", []string{"a 1 80,81 lb-1", "b 2 443,22 lb-1 overflow"}, []string{"lb-1 3"},
			[]string{"lb-1 led by a", "new led by b"}},
		{"one that no load balancer has room for stays", []string{"a 1 22,53,80,81,443 lb-1 overflow"}, []string{"lb-1 3"},
			[]string{"lb-1 led by a"}},
		{"the first load balancer is that of the oldest", []string{"a 1 80 lb-2", "b 2 81 lb-1", "c 3 443"}, []string{"lb-1 50", "lb-2 50"},
			[]string{"lb-2 led by a", "lb-1 led by b", "lb-2 led by a"}},
		{"a Service waits where it is", []string{"a 1 80 waits=lb-1", "b 2 80 lb-1 overflow serves", "c 0 81 lb-2"},
			[]string{"lb-1 50", "lb-2 50"},
			[]string{"lb-1 led by a", "lb-2 led by c", "lb-2 led by c"}},
		{"an empty one is used", []string{"a 1 80"}, []string{"lb-1 50"}, []string{"lb-1 led by a"}},
		{"one that is gone", []string{"a 1 80 lb-9"}, []string{"lb-1 50"}, []string{"lb-1 led by a"}},
		{"who is elsewhere, and does not get all ports", []string{"a 1 80 lb-1 serves", "b 2 80,81 elsewhere", "c 3 81 lb-1 serves"},
			[]string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a, 80 of a", "lb-1 led by a"}},
		{"who is elsewhere, and gets all ports", []string{"a 1 80 lb-1 serves", "b 2 53,81 elsewhere", "c 3 81 lb-1 serves"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "lb-1 led by a", "lb-1 led by a, 81 of b"}},
		{"who may not lead", []string{"a 1 80 unfit", "b 2 81"}, nil, []string{"new led by b", "new led by b"}},
		{"who was refused a new one does not lead it", []string{"a 1 80 refused", "b 2 81"}, nil, []string{"new led by b", "new led by b"}},
		{"but what is there", []string{"a 1 80 refused", "b 2 81 lb-1"}, []string{"lb-1 50"}, []string{"lb-1 led by a", "lb-1 led by a"}},
		{"also of an overflow", []string{"a 1 80,81 lb-1", "b 2 80 overflow refused", "c 3 81 overflow"}, []string{"lb-1 50"},
			[]string{"lb-1 led by a", "new led by c", "new led by c"}},
		{"all were refused", []string{"a 1 80 refused", "b 2 81 refused"}, nil, []string{"new", "new"}},
		{"nobody may lead", []string{"a 1 80 unfit"}, nil, []string{"new"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var services []Service
			for _, text := range test.services {
				services = append(services, service(text))
			}
			var balancers []LoadBalancer
			for _, text := range test.balancers {
				balancers = append(balancers, loadBalancer(text))
			}
			most := 3
			if len(balancers) > 0 {
				most = balancers[0].Most
			}
			byName := map[types.UID]string{}
			for _, s := range services {
				byName[s.UID] = shown(Decide(services, balancers, most, s.UID))
			}
			var got []string
			for _, name := range []types.UID{"a", "b", "c", "d"} {
				if text, ok := byName[name]; ok {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places of a, b, ... (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlacesSettle: whatever Services come and go, each carrying out its place in turn leads to places that do not change any more: nobody
// has two owners of a port, no load balancer has more than fits, and those that may overflow have all their ports.
func TestPlacesSettle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		most := 3 + random.IntN(4)
		var services []Service
		for i := range 1 + random.IntN(12) {
			s := Service{
				UID: types.UID(fmt.Sprint("s", i)), Name: types.NamespacedName{Name: fmt.Sprint("s", i)},
				Created: time.Unix(int64(random.IntN(5)), 0), Overflow: random.IntN(2) == 0,
			}
			for range 1 + random.IntN(2) {
				if port := (Port{Number: int32(80 + random.IntN(4))}); len(s.Ports) == 0 || s.Ports[0] != port {
					s.Ports = append(s.Ports, port)
				}
			}
			services = append(services, s)
		}
		var balancers []LoadBalancer
		changed := true
		for round := 0; changed; round++ {
			if round == 20 {
				t.Fatalf("seed %d: places still change after %d rounds", seed, round)
			}
			changed = false
			for _, i := range random.Perm(len(services)) {
				place := Decide(services, balancers, most, services[i].UID)
				if place.ID == "" && !place.Full {
					place.ID = fmt.Sprint("lb-", len(balancers))
					balancers = append(balancers, LoadBalancer{ID: place.ID, Most: most})
				}
				if !place.Full && services[i].At != place.ID {
					services[i].At, changed = place.ID, true
				}
			}
		}
		owners := map[string]string{}
		for _, s := range services {
			place := Decide(services, balancers, most, s.UID)
			if s.Overflow && (place.Full || len(place.Taken) > 0) {
				t.Errorf("seed %d: %s may overflow, and lacks ports: %s", seed, s.UID, shown(place))
			}
			for _, port := range s.Ports {
				key := fmt.Sprint(place.ID, port)
				if _, taken := place.Taken[port]; taken || place.Full {
					continue
				}
				if owners[key] != "" {
					t.Errorf("seed %d: port %s has two owners, %s and %s", seed, key, owners[key], s.UID)
				}
				owners[key] = string(s.UID)
			}
		}
	}
}

// TestTooManyPorts: a Service with more ports than any load balancer takes gets none, however often that is decided: a new one would have
// room for it no more than the last one.
func TestTooManyPorts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a 1 80,81,82", "a 1 80,81,82 overflow"} {
		for _, balancers := range [][]LoadBalancer{nil, {loadBalancer("lb-1 2")}, {loadBalancer("lb-1 2"), loadBalancer("lb-2 2")}} {
			place := Decide([]Service{service(text), service("b 2 90 overflow")}, balancers, 2, "a")
			if !place.Full || !place.TooLarge {
				t.Errorf("%s beside %d load balancers: %+v", text, len(balancers), place)
			}
			other := Decide([]Service{service(text), service("b 2 90 overflow")}, balancers, 2, "b")
			if other.Full || other.TooLarge {
				t.Errorf("b beside %s: %+v", text, other)
			}
		}
	}
}
