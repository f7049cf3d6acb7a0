package node

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// candidate is an instance that a call may read besides those that it is made for.
type candidate struct {
	id   string
	rank int
	due  time.Time
}

// Ranks of candidates, in the order in which they get the room.
const (
	rankUnread = iota // no answer covers it yet
	rankSilent        // the lifecycle controller asks for it next
	rankRest
	rankFresh // silent, and read not long ago: it has a call of its own when it is due
)

// fillIDs names the instances of nodes that no answer covers yet, then those of silent nodes that are due, then those that expire soonest.
// Silent nodes that are not due come last, or a hundred of them would take all the room of every call, and each of the others would
// need a call of its own. For the same reason an instance that ECS does not show counts as read.
func (s *snapshot) fillIDs(asked sets.Set[string], refused func(string) bool, room int) []string {
	all := s.nodes()
	candidates := make([]candidate, 0, len(all))
	for _, node := range all {
		if id, err := s.idOf(node); err == nil && !asked.Has(id) && !refused(id) {
			candidates = append(candidates, s.candidate(node, id))
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.due.Compare(b.due), cmp.Compare(a.id, b.id))
	})
	var ids []string
	for _, candidate := range candidates[:min(room, len(candidates))] {
		ids = append(ids, candidate.id)
	}
	return s.withControl(asked, ids, room)
}

// withControl makes sure that a call that would name only missing instances names one that exists too, as far as the last answers
// show any: without, its answer proves nothing. The id of the lowest rank gives way.
func (s *snapshot) withControl(asked sets.Set[string], ids []string, room int) []string {
	mayBeShown := func(id string) bool { return !s.knownOf(id).lacked() } // the last answer about it did, or there was none
	if room == 0 || slices.ContainsFunc(slices.Concat(ids, asked.UnsortedList()), mayBeShown) {
		return ids
	}
	shown := s.recent("", 1)
	if len(ids) == room && len(shown) > 0 {
		ids = ids[:room-1]
	}
	return append(ids, shown...)
}

// candidate ranks one instance.
func (s *snapshot) candidate(node *corev1.Node, id string) candidate {
	_, silent := nodes.Silent(node)
	known := s.knownOf(id)
	read := known.read
	if known.lacked() {
		read = known.asked
	}
	switch {
	case read.IsZero():
		return candidate{id: id, rank: rankUnread}
	case silent && time.Since(read) < s.silentAge(node):
		return candidate{id: id, rank: rankFresh, due: read}
	case silent:
		return candidate{id: id, rank: rankSilent, due: read}
	case !known.seen():
		return candidate{id: id, rank: rankRest, due: read.Add(s.ttl)}
	default:
		return candidate{id: id, rank: rankRest, due: known.expires}
	}
}

// fillAddresses names the addresses of nodes that wait for a provider ID, those first about which the last answer is oldest.
func (s *snapshot) fillAddresses(asked sets.Set[string], refused func(string) bool, room int) []string {
	addresses := sets.New[string]()
	for _, node := range s.nodes() {
		address := nodeAddress(node)
		if _, err := s.idOf(node); errors.Is(err, ErrProviderIDEmpty) && address != "" && !asked.Has(address) && !refused(address) {
			addresses.Insert(address)
		}
	}
	all := sets.List(addresses)
	s.mu.Lock()
	defer s.mu.Unlock()
	answered := func(address string) (last time.Time) {
		if answer := s.addresses[address]; answer.batch != nil {
			last = answer.asked
		}
		return last
	}
	slices.SortStableFunc(all, func(a, b string) int { return answered(a).Compare(answered(b)) })
	return all[:min(room, len(all))]
}
