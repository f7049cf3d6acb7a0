package backend

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// usedOf is the use of instances that are backends of other Services so many times, where the quota leaves room for more.
func usedOf(load map[string]int) Use {
	return Use{Quota: 50, Share: math.Inf(1), Each: 1, Known: true, Load: used(load), Times: used(load), Wanted: used(load)}
}

// TestFullLoadBalancerSettles: where the load balancer has no room for a node that comes beside the one that leaves, the node that comes is
// refused, and the next choice is about one node less. The choices come to an end all the same, the Service has as many nodes as before,
// and a zone without a node gets one.
func TestFullLoadBalancerSettles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		zones []string
		// loads are how many times each node is a backend of other Services, most is how many backends the cloud takes, and want what the Service
		// has at last.
		loads []int
		most  int
		want  []string
	}{
		{"room", []string{"a", "a", "a"}, []int{12, 10, 0}, 3, nil},
		{"no room", []string{"a", "a", "a"}, []int{12, 10, 0}, 2, []string{"i-00000", "i-00001"}},
		{"no room, and a zone has too few", []string{"a", "a", "b"}, []int{12, 10, 0}, 2, []string{"i-00001", "i-00002"}},
		{"no room, and the one that leaves might come back", []string{"a", "a", "a", "a"}, []int{5, 5, 3, 6}, 2, []string{"i-00000", "i-00001"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(0, 0, 0)
			for i, zone := range test.zones {
				f.join(i, zone)
			}
			for i := range 20 { // which node is the best depends on the Service
				svc := types.UID(fmt.Sprint("service-", i))
				has := sets.New("i-00000", "i-00001")
				if !settles(f, svc, has, test.loads, test.most) {
					t.Errorf("%s: the choices do not come to an end", svc)
				}
				if got := sets.List(has); len(got) != 2 || test.want != nil && !slices.Equal(got, test.want) {
					t.Errorf("%s: the backends are %v, want %v", svc, got, test.want)
				}
			}
		})
	}
}

// TestNoShiftIntoRoomThatIsNeeded: one port has as many nodes as there is room for, and another one is still to get some of them. A node
// that is a backend much less often does not come beside them.
func TestNoShiftIntoRoomThatIsNeeded(t *testing.T) {
	t.Parallel()
	loads := map[string]int{"i-00000": 12, "i-00001": 10, "i-00002": 10, "i-00003": 10}
	for _, second := range []int{2, 4} {
		room := RoomOf(8, false, 2, func(yield func(Entry) bool) {
			for i := range 4 + second {
				if !yield(Entry{Kind: KindInstance, ID: fmt.Sprintf("i-%05d", i%4), Group: fmt.Sprint(i / 4), Ours: true}) {
					return
				}
			}
		})
		choice := Choose(Input{Facts: Facts{Nodes: NewNodeSet(newFleet(5, 1, 0).nodes)}, ControlPlane: ControlPlaneAuto},
			ChoiceInput{Service: "a", Subset: 4, Room: room, Use: usedOf(loads)})
		if slices.ContainsFunc(choice.Nodes, func(node *Node) bool { return node.InstanceID == "i-00004" }) {
			t.Errorf("%d of 4 nodes in the second group: a further one is to come", second)
		}
	}
}

// TestClaimsWhatOthersGiveUp: a Service without any node claims a full one of which the others give up enough, and not the one with the
// lowest load, where the only nodes of other Services and those of their pods leave no room whatever happens.
func TestClaimsWhatOthersGiveUp(t *testing.T) {
	t.Parallel()
	load, kept := map[string]int{"i-00000": 3, "i-00001": 5}, map[string]int{"i-00000": 3, "i-00001": 2}
	use := usedOf(load)
	use.Quota, use.Share, use.Each, use.Kept = 5, 1, 3, used(kept)
	choice := Choose(Input{Facts: Facts{Nodes: NewNodeSet(newFleet(2, 1, 0).nodes)}, ControlPlane: ControlPlaneAuto},
		ChoiceInput{Service: "ports", Use: use})
	if got := sets.List(choice.Without); !slices.Equal(got, []string{"i-00001"}) || len(choice.Nodes) > 0 {
		t.Errorf("it claims %v and has %d nodes, want to claim i-00001", got, len(choice.Nodes))
	}
}

// settles has a Service choose two nodes until it stays with what it has, and reports whether it does.
func settles(f *fleet, svc types.UID, has sets.Set[string], loads []int, most int) bool {
	load := map[string]int{}
	for i, n := range loads {
		load[f.nodes[i].InstanceID] = n
	}
	for range 10 {
		room := RoomOf(most, false, 1, func(yield func(Entry) bool) {
			for id := range has {
				if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
					return
				}
			}
		})
		chosen := sets.New[string]()
		for _, node := range Choose(Input{Facts: Facts{Nodes: NewNodeSet(f.nodes)}, ControlPlane: ControlPlaneAuto},
			ChoiceInput{Service: svc, Subset: 2, Room: room, Use: usedOf(load)}).Nodes {
			chosen.Insert(node.InstanceID)
		}
		if chosen.Equal(has) {
			return true
		}
		for _, id := range sets.List(chosen.Difference(has)) {
			if has.Len() < most {
				has.Insert(id)
			}
		}
		has.Delete(sets.List(has.Difference(chosen))...)
	}
	return false
}

// TestZoneWithTooFewGetsOne: a zone has one node of a Service, and should have two. The choices come to an end, and it has two: the node
// that makes room is one of another zone.
func TestZoneWithTooFewGetsOne(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"no room": 4, "room": 5} {
		f, loads := newFleet(0, 0, 0), map[string]int{}
		for i, zone := range []string{"b", "b", "a", "a", "a"} {
			f.join(i, zone)
			loads[f.nodes[i].InstanceID] = 10
		}
		for i := range 20 { // which node is the best depends on the Service
			svc := types.UID(fmt.Sprint("service-", i))
			has := sets.New("i-00000", "i-00002", "i-00003", "i-00004")
			ended := false
			for range 20 {
				room := RoomOf(most, false, 1, func(yield func(Entry) bool) {
					for id := range has {
						if !yield(Entry{Kind: KindInstance, ID: id, Ours: true}) {
							return
						}
					}
				})
				chosen := sets.New[string]()
				for _, node := range Choose(Input{Facts: Facts{Nodes: NewNodeSet(f.nodes)}, ControlPlane: ControlPlaneAuto},
					ChoiceInput{Service: svc, Subset: 4, Room: room, Use: usedOf(loads)}).Nodes {
					chosen.Insert(node.InstanceID)
				}
				if ended = chosen.Equal(has); ended {
					break
				}
				has = chosen
			}
			if !ended || !has.HasAll("i-00000", "i-00001") {
				t.Errorf("%s, %s: ended: %v, backends %v", name, svc, ended, sets.List(has))
			}
		}
	}
}

// TestOnlyNodeStaysWithoutRoom: another node is hardly ever a backend, and there is no room for both. The only node of a Service does not
// leave for it: a Service without any would have nothing for a new group.
func TestOnlyNodeStaysWithoutRoom(t *testing.T) {
	t.Parallel()
	f, load := newFleet(2, 1, 0), map[string]int{"i-00000": 10}
	for i := range 20 {
		room := RoomOf(1, false, 1, slices.Values([]Entry{{Kind: KindInstance, ID: "i-00000", Ours: true}}))
		choice := Choose(Input{Facts: Facts{Nodes: NewNodeSet(f.nodes)}, ControlPlane: ControlPlaneAuto},
			ChoiceInput{Service: types.UID(fmt.Sprint("service-", i)), Room: room, Use: usedOf(load)})
		if len(choice.Nodes) != 1 || choice.Nodes[0].InstanceID != "i-00000" {
			t.Errorf("service-%d: %v", i, choice.Nodes)
		}
	}
}

// TestGroupKeepsANodeUntilAnotherOneIsThere: the ports of a Service have different nodes, and there is only room for one in each group. A
// group that has none of those that are chosen keeps one that works, as long as traffic comes to the group.
func TestGroupKeepsANodeUntilAnotherOneIsThere(t *testing.T) {
	t.Parallel()
	f := newFleet(3, 1, 0)
	set := NewNodeSet(f.nodes)
	for name, test := range map[string]struct {
		has  []Entry
		want []string
	}{
		"another one":         {[]Entry{{ID: "i-00000"}}, []string{"i-00000", "i-00001"}},
		"two others":          {[]Entry{{ID: "i-00000"}, {ID: "i-00002"}}, []string{"i-00000", "i-00001"}},
		"it is there":         {[]Entry{{ID: "i-00000"}, {ID: "i-00001"}}, []string{"i-00001"}},
		"it is no node":       {[]Entry{{ID: "i-gone"}}, []string{"i-00001"}},
		"nothing sends to it": {[]Entry{{ID: "i-00000", Idle: true}}, []string{"i-00001"}},
		"none":                {nil, []string{"i-00001"}},
	} {
		for i := range test.has {
			test.has[i].Kind, test.has[i].Ours, test.has[i].Group = KindInstance, true, "this"
		}
		in := Input{Facts: Facts{Nodes: set}, ControlPlane: ControlPlaneAuto}
		in.Choice = Choice{Some: true, Nodes: []*Node{set.byID["i-00001"]}, Room: RoomOf(1, false, 1, slices.Values(test.has))}
		found, _ := NewResolver(in).Backends(corev1.ServicePort{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}, "this")
		var got []string
		for b := range found.All {
			got = append(got, b.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
