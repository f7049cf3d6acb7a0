package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// addressAge is how long an answer says which instance has an address. Nodes that join together are asked for by ten
// workers at a time, and the first answer has a hundred of them. An address moves on only after its instance is released
// and the machine of another has started, which takes longer.
const addressAge = 30 * time.Second

// missAge is how long an answer says that ECS shows no instance of an id or address. It is about what a pass over all nodes
// takes, so that a hundred nodes without instance cost one call and not one each, and is short enough for the list to catch
// up with new instances. For an instance that has been missing for long it grows up to maxMissAge: the stock node controller
// tries such nodes again for ever.
const (
	missAge    = 5 * time.Second
	maxMissAge = time.Minute
)

// forgetAfter is how long an instance is remembered that nobody asks for any more.
const forgetAfter = time.Hour

// snapshot remembers instances by id and reads them again when they are too old, a hundred at a time. A failed answer
// changes nothing in it.
type snapshot struct {
	api       API
	ttl       time.Duration
	nodes     func() []*corev1.Node
	idOf      func(*corev1.Node) (string, error)
	silentAge func(node *corev1.Node) time.Duration // how old the answer about a silent node may be

	byID      *batcher
	byAddress *batcher

	mu sync.Mutex // guards the maps
	// instances are what answers have said about instances, by id. A caller that asks for one node after the other does not make a call
	// for each that is missing.
	instances map[string]knowledge
	// addresses holds the last answer about an address, and since when such answers show no instance that has it, zero if one has.
	addresses map[string]miss
}

// knowledge is what answers have said about an instance.
type knowledge struct {
	// instance is as an answer showed it last, at read, and good until expires; all are zero if none has.
	instance      alicloud.Instance
	read, expires time.Time
	// miss is empty unless the last answer lacked the instance.
	miss
}

func (k knowledge) seen() bool   { return !k.read.IsZero() }
func (k knowledge) lacked() bool { return k.batch != nil }

// miss is a row of answers that lacked an instance: the last of them, and when the first one was asked for; of an address, zero where the
// last answer has it.
type miss struct {
	*batch
	since time.Time
}

// age is how long the last answer is good for.
func (m miss) age() time.Duration {
	switch {
	case m.batch == nil:
		return missAge
	case m.since.IsZero():
		return addressAge
	}
	return max(missAge, min(maxMissAge, m.asked.Sub(m.since)/4))
}

func newSnapshot(opts Options, nodes func() []*corev1.Node, idOf func(*corev1.Node) (string, error)) *snapshot {
	s := &snapshot{
		api: opts.API, ttl: opts.MetadataTTL, nodes: nodes, idOf: idOf,
		instances: map[string]knowledge{}, addresses: map[string]miss{},
	}
	s.byID = &batcher{
		window: opts.Window, size: opts.BatchSize, running: map[string]*batch{}, refused: cache.NewExpiring(),
		reserve: 1, // see withControl
		query: func(ctx context.Context, ids []string) ([]alicloud.Instance, error) {
			return s.read(ctx, alicloud.InstanceQuery{IDs: ids})
		}, fill: s.fillIDs, answered: s.rememberMisses,
	}
	s.byAddress = &batcher{
		window: opts.Window, size: opts.BatchSize, running: map[string]*batch{}, refused: cache.NewExpiring(),
		query: func(ctx context.Context, addresses []string) ([]alicloud.Instance, error) {
			return s.read(ctx, alicloud.InstanceQuery{PrivateIPs: addresses, VPCID: opts.VPCID})
		}, fill: s.fillAddresses, answered: s.rememberAddresses,
	}
	return s
}

// metadata returns the instance as it was at most a metadata TTL ago, the zero one when ECS answered without it.
func (s *snapshot) metadata(ctx context.Context, id string) (alicloud.Instance, error) {
	known := s.knownOf(id)
	if time.Now().Before(known.expires) {
		return known.instance, nil
	}
	instance, _, err := s.current(ctx, id, known.age())
	return instance, err
}

// current returns the instance as it was at most maxAge ago, or the answer that lacks it.
func (s *snapshot) current(ctx context.Context, id string, maxAge time.Duration) (alicloud.Instance, *batch, error) {
	known := s.knownOf(id)
	switch {
	case known.lacked() && time.Since(known.asked) < maxAge:
		return alicloud.Instance{}, known.batch, nil
	case !known.lacked() && known.seen() && time.Since(known.read) < maxAge:
		return known.instance, nil, nil
	}
	return s.ask(ctx, id)
}

func (s *snapshot) knownOf(id string) knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances[id]
}

func (s *snapshot) ask(ctx context.Context, id string) (alicloud.Instance, *batch, error) {
	answer, err := s.byID.ask(ctx, id)
	if err != nil {
		return alicloud.Instance{}, nil, fmt.Errorf("read instance %s: %w", id, err)
	}
	at := slices.IndexFunc(answer.instances, func(each alicloud.Instance) bool { return each.ID == id })
	if at < 0 {
		return alicloud.Instance{}, answer, nil
	}
	return answer.instances[at], answer, nil
}

// atAddress returns the instances of the VPC that have the private address.
func (s *snapshot) atAddress(ctx context.Context, address string) ([]alicloud.Instance, error) {
	s.mu.Lock()
	last := s.addresses[address]
	s.mu.Unlock()
	answer := last.batch
	if answer == nil || time.Since(answer.asked) >= last.age() {
		var err error
		if answer, err = s.byAddress.ask(ctx, address); err != nil {
			return nil, fmt.Errorf("read the instance with address %s: %w", address, err)
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

// onlyEver reports whether this process saw the instance, and no other.
func (s *snapshot) onlyEver(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, known := range s.instances {
		if other != id && known.seen() {
			return false
		}
	}
	return s.instances[id].seen()
}

// recent returns up to n ids of other instances that no later answer lacked, those seen last first.
func (s *snapshot) recent(other string, n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, known := range s.instances {
		if id != other && known.seen() && !known.lacked() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return s.instances[b].read.Compare(s.instances[a].read) })
	return ids[:min(n, len(ids))]
}

// rememberMisses notes which instances an answer lacked that no later one has shown.
func (s *snapshot) rememberMisses(answer *batch) {
	found := sets.New[string]()
	for i := range answer.instances {
		found.Insert(answer.instances[i].ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range answer.all {
		known := s.instances[id]
		if found.Has(id) || known.read.After(answer.asked) {
			continue
		}
		if !known.lacked() {
			known.since = answer.asked
		}
		known.batch = answer
		s.instances[id] = known
	}
	maps.DeleteFunc(s.instances, func(_ string, known knowledge) bool {
		return time.Since(known.expires) > forgetAfter && (!known.lacked() || time.Since(known.asked) > forgetAfter)
	})
}

func (s *snapshot) rememberAddresses(answer *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.addresses, func(_ string, old miss) bool { return time.Since(old.asked) >= 2*maxMissAge })
	found := sets.New[string]()
	for i := range answer.instances {
		found.Insert(answer.instances[i].PrivateIPs...)
	}
	for address := range found {
		s.addresses[address] = miss{batch: answer}
	}
	for _, address := range answer.all {
		if !found.Has(address) {
			s.addresses[address] = miss{batch: answer, since: cmp.Or(s.addresses[address].since, answer.asked)}
		}
	}
}

func (s *snapshot) read(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	instances, err := s.api.DescribeInstances(ctx, query)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range instances {
		s.instances[instances[i].ID] = knowledge{instance: instances[i], read: now, expires: now.Add(s.ttl/2 + rand.N(s.ttl))}
	}
	return instances, nil
}
