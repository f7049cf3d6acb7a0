package sharing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestNobodyLosesWhatItCannotHaveElsewhere: whatever Services come, one that may overflow and may have no listener on any other load
// balancer keeps those that it has, and no port has two owners.
func TestNobodyLosesWhatItCannotHaveElsewhere(t *testing.T) {
	t.Parallel()
	kept := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test
		services, balancers := serving(random)
		owners := map[string]types.UID{}
		for i := range services {
			s := &services[i]
			place := Decide(services, balancers, 4, s.UID)
			for _, port := range s.Ports {
				_, taken := place.Taken[port]
				if key := fmt.Sprint(place.ID, port); place.ID != "" && !place.Full && !taken {
					if owners[key] != "" {
						t.Errorf("seed %d: %s has two owners, %s and %s", seed, key, owners[key], s.UID)
					}
					owners[key] = s.UID
				}
				if s.Bars == nil || !s.Overflow || !slices.Contains(s.Has[s.At], port) {
					continue
				}
				if place.Kept {
					kept++
				}
				if place.ID != s.At || taken || place.Full {
					t.Errorf("seed %d: %s loses port %v of %s: %+v", seed, s.UID, port, s.At, place)
				}
			}
		}
	}
	if kept < 100 {
		t.Errorf("%d listeners are kept although an older Service wants them, want more for the test to mean anything", kept)
	}
}

// serving makes Services of which some have listeners, each on a port that nobody else has there. Some of these bar all other load
// balancers.
func serving(random *rand.Rand) (services []Service, balancers []LoadBalancer) {
	used := map[string]bool{}
	for i := range 2 {
		balancers = append(balancers, LoadBalancer{ID: fmt.Sprint("lb-", i), Most: 4})
	}
	for i := range 2 + random.IntN(6) {
		s := Service{
			UID: types.UID(fmt.Sprint("s", i)), Name: types.NamespacedName{Name: fmt.Sprint("s", i)}, Created: time.Unix(int64(random.IntN(5)), 0),
			Overflow: random.IntN(3) > 0, Stays: random.IntN(4) == 0, Ports: []Port{{Number: int32(80 + random.IntN(3))}}, //nolint:gosec // small
		}
		if random.IntN(2) == 0 {
			s.At = balancers[random.IntN(len(balancers))].ID
		}
		if key := fmt.Sprint(s.At, s.Ports[0]); s.At != "" && !used[key] {
			used[key] = true
			s.Has = Listed{s.At: s.Ports}
		}
		if random.IntN(2) == 0 {
			s.Bars = func(*LoadBalancer, types.UID) bool { return true }
		}
		services = append(services, s)
	}
	return services, balancers
}

// TestServiceKeepsWhatItIsServedOn: a Service that does not ask for the group keeps its listeners there, also on a port that an older one
// wants, and in a process that has read nothing yet. What others have, it does not get.
func TestServiceKeepsWhatItIsServedOn(t *testing.T) {
	t.Parallel()
	port := Port{Number: 80}
	older := func(has Listed) Service {
		return Service{UID: "older", Name: types.NamespacedName{Name: "older"}, Created: time.Unix(1, 0), Ports: []Port{port}, Has: has}
	}
	keeps := func(has Listed) Service {
		return Service{UID: "keeps", Name: types.NamespacedName{Name: "keeps"}, Created: time.Unix(2, 0), Ports: []Port{port}, At: "lb-1",
			Has: has, Keeps: true}
	}
	on := Listed{"lb-1": {port}}
	known := []LoadBalancer{{ID: "lb-1"}}
	for name, test := range map[string]struct {
		services  []Service
		balancers []LoadBalancer
		taken     bool
	}{
		"an older one wants the port":     {[]Service{older(nil), keeps(on)}, known, false},
		"an older one has the port":       {[]Service{older(on), keeps(nil)}, known, true},
		"somebody else has the port":      {[]Service{keeps(nil)}, []LoadBalancer{{ID: "lb-1", Foreign: []Port{port}}}, true},
		"nothing is read":                 {[]Service{older(nil), keeps(nil)}, nil, false},
		"the listeners were not read yet": {[]Service{older(nil), keeps(nil)}, known, false},
	} {
		place := Decide(test.services, test.balancers, 4, "keeps")
		if place.ID != "lb-1" && place.ID != "" || place.Full || (len(place.Taken) > 0) != test.taken {
			t.Errorf("%s: %+v, want taken %v", name, place, test.taken)
		}
	}
}
