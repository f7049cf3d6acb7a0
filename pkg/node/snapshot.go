package node

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// addressAge is how long an answer says which instance has an address. Nodes that join together are asked for by ten
// workers at a time, and the first answer has a hundred of them. An address moves on only after its instance is released
// and the machine of another has started, which takes longer.
const addressAge = 30 * time.Second

// forgetAfter is how long an instance is remembered that nobody asks for any more.
const forgetAfter = time.Hour

// snapshot remembers instances by id and reads them again when they are too old, a hundred at a time. A failed answer
// changes nothing in it.
type snapshot struct {
	api   API
	vpcID string
	ttl   time.Duration
	nodes func() []*corev1.Node
	idOf  func(*corev1.Node) (string, error)

	byID      *lookups
	byAddress *lookups

	mu    sync.Mutex // guards the maps
	known map[string]sighting
	// misses holds the last answer that lacked an instance, so that a caller that asks for one node after the other does
	// not make a call for each.
	misses map[string]*lookup
	// addresses holds the last answer that had an instance for an address.
	addresses map[string]*lookup
}

// sighting is an instance as an answer showed it.
type sighting struct {
	instance alicloud.Instance
	read     time.Time
	expires  time.Time
}

func newSnapshot(opts Options, nodes func() []*corev1.Node) *snapshot {
	s := &snapshot{
		api: opts.API, vpcID: opts.VPCID, ttl: opts.MetadataTTL, nodes: nodes, idOf: InstanceIDOf(opts.Region),
		known: map[string]sighting{}, misses: map[string]*lookup{}, addresses: map[string]*lookup{},
	}
	s.byID = newLookups(opts.Window, opts.BatchSize, s.readByID, s.fillIDs)
	s.byID.answered = s.rememberMisses
	s.byAddress = newLookups(opts.Window, opts.BatchSize, s.readByAddress, s.fillAddresses)
	s.byAddress.answered = s.rememberAddresses
	return s
}

// metadata returns the instance as it was at most a metadata TTL ago. The second result is false when ECS answered
// without it.
func (s *snapshot) metadata(ctx context.Context, id string) (alicloud.Instance, bool, error) {
	if known, ok := s.remembered(id); ok && time.Now().Before(known.expires) {
		return known.instance, true, nil
	}
	instance, _, err := s.look(ctx, id)
	return instance, instance.ID != "", err
}

// current returns the instance as it was at most maxAge ago, or the answer that lacks it.
func (s *snapshot) current(ctx context.Context, id string, maxAge time.Duration) (alicloud.Instance, *lookup, error) {
	known, ok := s.remembered(id)
	if ok && time.Since(known.read) < maxAge {
		return known.instance, nil, nil
	}
	if miss := s.missed(id); miss != nil && miss.asked.After(known.read) && time.Since(miss.asked) < maxAge {
		return alicloud.Instance{}, miss, nil
	}
	return s.look(ctx, id)
}

func (s *snapshot) look(ctx context.Context, id string) (alicloud.Instance, *lookup, error) {
	answer, err := s.byID.ask(ctx, id)
	if err != nil {
		return alicloud.Instance{}, nil, fmt.Errorf("look up instance %s: %w", id, err)
	}
	for i := range answer.instances {
		if answer.instances[i].ID == id {
			return answer.instances[i], answer, nil
		}
	}
	return alicloud.Instance{}, answer, nil
}

// atAddress returns the instances of the VPC that have the private address.
func (s *snapshot) atAddress(ctx context.Context, address string) ([]alicloud.Instance, error) {
	answer := s.addressAnswer(address)
	if answer == nil {
		var err error
		if answer, err = s.byAddress.ask(ctx, address); err != nil {
			return nil, fmt.Errorf("look up the instance with address %s: %w", address, err)
		}
	}
	var found []alicloud.Instance
	for i := range answer.instances {
		if slices.Contains(answer.instances[i].PrivateIPs, address) {
			found = append(found, answer.instances[i])
		}
	}
	return found, nil
}

// seen reports whether this process ever saw the instance.
func (s *snapshot) seen(id string) bool {
	_, ok := s.remembered(id)
	return ok
}

// onlyEver reports whether this process saw the instance, and no other.
func (s *snapshot) onlyEver(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[id]
	return ok && len(s.known) == 1
}

// recent returns up to n ids of other instances that no later answer lacked, those seen last first.
func (s *snapshot) recent(other string, n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sightings := make([]sighting, 0, len(s.known))
	for id, known := range s.known {
		if miss, missed := s.misses[id]; id == other || (missed && miss.asked.After(known.read)) {
			continue
		}
		sightings = append(sightings, known)
	}
	slices.SortFunc(sightings, func(a, b sighting) int { return b.read.Compare(a.read) })
	return idsOf(sightings[:min(n, len(sightings))])
}

func (s *snapshot) remembered(id string) (sighting, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[id]
	return known, ok
}

func (s *snapshot) missed(id string) *lookup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misses[id]
}

func (s *snapshot) rememberMisses(answer *lookup) {
	found := sets.New[string]()
	for i := range answer.instances {
		found.Insert(answer.instances[i].ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range answer.all {
		if !found.Has(id) {
			s.misses[id] = answer
		}
	}
	for id, miss := range s.misses {
		if found.Has(id) || time.Since(miss.asked) > forgetAfter {
			delete(s.misses, id)
		}
	}
}

func (s *snapshot) addressAnswer(address string) *lookup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.addresses[address]; answer != nil && time.Since(answer.asked) < addressAge {
		return answer
	}
	return nil
}

func (s *snapshot) rememberAddresses(answer *lookup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, old := range s.addresses {
		if time.Since(old.asked) >= addressAge {
			delete(s.addresses, address)
		}
	}
	for i := range answer.instances {
		for _, address := range answer.instances[i].PrivateIPs {
			s.addresses[address] = answer
		}
	}
}

func (s *snapshot) readByID(ctx context.Context, ids []string) ([]alicloud.Instance, error) {
	return s.read(ctx, alicloud.InstanceQuery{IDs: ids})
}

func (s *snapshot) readByAddress(ctx context.Context, addresses []string) ([]alicloud.Instance, error) {
	return s.read(ctx, alicloud.InstanceQuery{PrivateIPs: addresses, VPCID: s.vpcID})
}

func (s *snapshot) read(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	instances, err := s.api.DescribeInstances(ctx, query)
	if err != nil {
		return nil, err
	}
	s.remember(instances, time.Now())
	return instances, nil
}

func (s *snapshot) remember(instances []alicloud.Instance, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range instances {
		lifetime := s.ttl/2 + rand.N(s.ttl)
		s.known[instances[i].ID] = sighting{instance: instances[i], read: now, expires: now.Add(lifetime)}
	}
	for id, known := range s.known {
		if now.Sub(known.expires) > forgetAfter {
			delete(s.known, id)
		}
	}
}

// fillIDs names the instances of nodes that were never read, then those of nodes that are not ready, which the lifecycle
// controller will ask for next, then those that expire soonest.
func (s *snapshot) fillIDs(asked sets.Set[string], room int) []string {
	type candidate struct {
		id   string
		rank int
		due  time.Time
	}
	var candidates []candidate
	s.mu.Lock()
	for _, node := range s.nodes() {
		id, err := s.idOf(node)
		if err != nil || asked.Has(id) {
			continue
		}
		known, ok := s.known[id]
		switch {
		case !ok:
			candidates = append(candidates, candidate{id: id})
		case !nodes.Ready(node):
			candidates = append(candidates, candidate{id: id, rank: 1, due: known.read})
		default:
			candidates = append(candidates, candidate{id: id, rank: 2, due: known.expires})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.due.Compare(b.due), cmp.Compare(a.id, b.id))
	})
	var ids []string
	for _, candidate := range candidates[:min(room, len(candidates))] {
		ids = append(ids, candidate.id)
	}
	return ids
}

// fillAddresses names the addresses of all nodes that wait for a provider ID.
func (s *snapshot) fillAddresses(asked sets.Set[string], room int) []string {
	addresses := sets.New[string]()
	for _, node := range s.nodes() {
		address := nodeAddress(node)
		if node.Spec.ProviderID == "" && nodes.ExclusionLabel(node) == "" && address != "" && !asked.Has(address) {
			addresses.Insert(address)
		}
	}
	all := sets.List(addresses)
	return all[:min(room, len(all))]
}

func idsOf(sightings []sighting) []string {
	ids := make([]string, 0, len(sightings))
	for i := range sightings {
		ids = append(ids, sightings[i].instance.ID)
	}
	return ids
}
