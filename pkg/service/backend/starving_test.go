package backend

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// hungry is what a Service knows that may have to give up the first node for another one that has none. The cloud lets instances be
// backends 4 times.
type hungry struct {
	// has are the nodes that the Service has, in each of its groups but for short ones, loads how many times each node is a backend of others.
	has    []int
	groups int
	short  int
	loads  []int
	// starving is how many Services without any node need the first one, leaving how many others give it up already.
	starving, leaving      int
	stays, unsettled, rest bool
}

func (h hungry) wish(subset Subset) ChoiceInput {
	load := map[string]int{}
	total := 0
	for i, n := range h.loads {
		load[fmt.Sprintf("i-%05d", i)] = n
		total += n
	}
	times := func(n int) func(string) int {
		return func(id string) int {
			if id == "i-00000" {
				return n
			}
			return 0
		}
	}
	of := func(id string) int { return load[id] }
	var entries []Entry
	for group := range max(h.groups, 1) {
		for _, i := range h.has {
			entries = append(entries, Entry{Kind: KindInstance, ID: fmt.Sprintf("i-%05d", i), Ours: true, Group: fmt.Sprint(group)})
		}
	}
	entries = entries[:len(entries)-h.short]
	return ChoiceInput{Service: "a", Subset: subset, Room: RoomOf(200, false, max(h.groups, 1), slices.Values(entries)), Crowd: Crowd{
		Quota: 4, Units: 40, Each: 1, Total: total, Load: of, Attached: of, Least: func([]*Node) int {
			return slices.Min(h.loads)
		}, Settled: !h.unsettled,
		Lack: Lack{
			Times: times(h.starving), Starving: times(h.starving), Leaving: times(h.leaving), Stays: func(string) bool {
				return h.stays
			}, Rests: h.rest,
		},
	}}
}

func chosenNames(choice Choice) []string {
	names := []string{}
	for _, node := range choice.Nodes {
		names = append(names, node.Name)
	}
	return names
}

// TestGivesUpForOneWithoutNode: a Service that has several nodes gives up one for another Service that has none, also if it has no more
// than it needs. With one node only, it takes another one in its place, if it can.
func TestGivesUpForOneWithoutNode(t *testing.T) {
	t.Parallel()
	full := []int{3, 3, 4}
	for name, test := range map[string]struct {
		hungry
		subset Subset
		want   []string
	}{
		"one of two":                  {hungry{has: []int{0, 1}, loads: full, starving: 1}, SubsetAuto, []string{"n00001"}},
		"one of two that it asks for": {hungry{has: []int{0, 1}, loads: full, starving: 1}, 3, []string{"n00001"}},
		"nobody has none":             {hungry{has: []int{0, 1}, loads: full}, SubsetAuto, []string{"n00000", "n00001"}},
		"another one gives it up": {hungry{has: []int{0, 1}, loads: full, starving: 1, leaving: 1}, SubsetAuto,
			[]string{"n00000", "n00001"}},
		"it is free": {hungry{has: []int{0, 1}, loads: []int{2, 3, 4}, starving: 1}, SubsetAuto, []string{"n00000", "n00001"}},
		"it remains for others": {hungry{has: []int{0, 1}, loads: full, starving: 1, stays: true}, SubsetAuto,
			[]string{"n00000", "n00001"}},
		"it is not known what all are": {hungry{has: []int{0, 1}, loads: full, starving: 1, unsettled: true}, SubsetAuto,
			[]string{"n00000", "n00001"}},
		"it has just given up one": {hungry{has: []int{0, 1}, loads: full, starving: 1, rest: true}, SubsetAuto, []string{"n00000", "n00001"}},
		"a port lacks the other one": {hungry{has: []int{0, 1}, loads: full, starving: 1, groups: 2, short: 1}, SubsetAuto,
			[]string{"n00000", "n00001"}},
		"the only one":              {hungry{has: []int{0}, loads: []int{3, 4, 4}, starving: 1}, SubsetAuto, []string{"n00000"}},
		"the only one, and another": {hungry{has: []int{0}, loads: []int{3, 4, 3}, starving: 1}, SubsetAuto, []string{"n00002"}},
	} {
		f := newFleet(len(test.loads), 1, 0)
		choice := Choose(Input{Nodes: NewNodeSet(f.nodes), ControlPlane: ControlPlaneAuto}, test.wish(test.subset))
		if got := chosenNames(choice); !slices.Equal(got, test.want) || choice.GivesUp == slices.Contains(got, "n00000") {
			t.Errorf("%s: %v, gives up: %v; want %v", name, got, choice.GivesUp, test.want)
		}
	}
}

// TestLocalGivesUpForOneWithoutNode: the same with externalTrafficPolicy Local, if each port has pods on several nodes that are backends.
func TestLocalGivesUpForOneWithoutNode(t *testing.T) {
	t.Parallel()
	full := []int{3, 3, 4}
	both, first := map[string][]int{"http": {0, 1}, "https": {0, 1}}, map[string][]int{"http": {0, 1}, "https": {0}}
	for name, test := range map[string]struct {
		hungry
		pods map[string][]int
		want []string
	}{
		"one of two":                   {hungry{has: []int{0, 1}, loads: full, starving: 1}, both, []string{"n00001"}},
		"nobody has none":              {hungry{has: []int{0, 1}, loads: full}, both, []string{"n00000", "n00001"}},
		"another one gives it up":      {hungry{has: []int{0, 1}, loads: full, starving: 1, leaving: 1}, both, []string{"n00000", "n00001"}},
		"it is not known what all are": {hungry{has: []int{0, 1}, loads: full, starving: 1, unsettled: true}, both, []string{"n00000", "n00001"}},
		"it has just given up one":     {hungry{has: []int{0, 1}, loads: full, starving: 1, rest: true}, both, []string{"n00000", "n00001"}},
		"the only one":                 {hungry{has: []int{0}, loads: full, starving: 1}, map[string][]int{"http": {0}}, []string{"n00000"}},
		"the only one of a port":       {hungry{has: []int{0, 1}, loads: full, starving: 1}, first, []string{"n00000", "n00001"}},
		"a port lacks the other one": {hungry{has: []int{0, 1}, loads: full, starving: 1, groups: 2, short: 1}, both,
			[]string{"n00000", "n00001"}},
		"it would take it":   {hungry{has: []int{1}, loads: full, starving: 1}, both, []string{"n00001"}},
		"it has none itself": {hungry{loads: full, starving: 1}, both, []string{"n00000", "n00001"}},
	} {
		f := newFleet(len(test.loads), 1, 0)
		in := Input{Nodes: NewNodeSet(f.nodes), ControlPlane: ControlPlaneAuto, Local: true, Family: discoveryv1.AddressTypeIPv4}
		for _, port := range slices.Sorted(maps.Keys(test.pods)) {
			var items []string
			for _, i := range test.pods[port] {
				items = append(items, fmt.Sprintf("10.0.0.%d@n%05d", i+1, i))
			}
			slice := testkit.EndpointSlice("web", corev1.ServicePort{Name: port, Port: 80}, items...)
			slice.Ports[0].Name = ptr.To(port)
			in.Slices = append(in.Slices, slice)
		}
		choice := Choose(in, test.wish(SubsetAuto))
		if got := chosenNames(choice); !slices.Equal(got, test.want) || choice.GivesUp && slices.Contains(got, "n00000") {
			t.Errorf("%s: %v, gives up: %v; want %v", name, got, choice.GivesUp, test.want)
		}
	}
}

// TestLocalKeepsTheOnlyNodeThatWorks: endpoints on a node that is not ready count as ready for a moment longer. Such a node is none with
// which the Service can do without the other one.
func TestLocalKeepsTheOnlyNodeThatWorks(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{true, false} {
		nodes := newFleet(3, 1, 0).nodes
		nodes[1].Ready = ready
		in := Input{
			Nodes: NewNodeSet(nodes), ControlPlane: ControlPlaneAuto, Local: true, Family: discoveryv1.AddressTypeIPv4,
			Slices: []*discoveryv1.EndpointSlice{testkit.EndpointSlice("web", corev1.ServicePort{Name: "http", Port: 80}, "10.0.0.1@n00000",
				"10.0.0.2@n00001")},
		}
		choice := Choose(in, hungry{has: []int{0, 1}, loads: []int{3, 3, 4}, starving: 1}.wish(SubsetAuto))
		if gives := !slices.Contains(chosenNames(choice), "n00000"); gives != ready || choice.GivesUp != ready || choice.Yields != ready {
			t.Errorf("the other node is ready: %v; gives up: %v, yields: %v", ready, gives, choice.Yields)
		}
	}
}
