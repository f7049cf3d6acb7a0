package console

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// groupTag is the tag of a load balancer that a load balancer group has: CLUSTER/NAMESPACE/NAME.
const groupTag = "alicloud-ccm/load-balancer-group"

// groupIn is the group that a tag names, as CLUSTER/NAMESPACE/NAME.
func groupIn(tags cloud.Tags) string {
	for _, tag := range tags {
		if tag.Key == groupTag {
			return tag.Value
		}
	}
	return ""
}

// sharedBalancer is a card of a load balancer that several Services share, or that belongs to a group with any number of them. Which of the
// Services is the oldest one, on which the attributes of the load balancer depend, only Kubernetes knows.
type sharedBalancer struct {
	Group, Cluster, Product, Balancer, Address string
	Services                                   []service
	// Listeners are how many ports the Services have, Others the listeners that belong to none of them.
	Listeners int
	Others    []servicePort
}

// shared copies the load balancers that match and that Services share, by group: by its name, its load balancer, or a Service.
func (c *Console) shared(balancers []*balancer, query string) list[sharedBalancer] {
	found := filtered[sharedBalancer]{query: query}
	several := slices.DeleteFunc(slices.Clone(balancers), func(b *balancer) bool { return b.group == "" && len(b.owners) < 2 })
	slices.SortStableFunc(several, func(a, b *balancer) int { return strings.Compare(a.group, b.group) })
	for _, b := range several {
		words := append(b.words(), b.group)
		for _, o := range b.owners {
			words = append(words, o.String())
		}
		found.offer(func() sharedBalancer { return b.shared() }, words...)
	}
	return found.list
}

func (b *balancer) shared() sharedBalancer {
	cluster, group, _ := strings.Cut(b.group, "/")
	card := sharedBalancer{Group: group, Cluster: cluster, Product: b.product, Balancer: b.id, Address: b.address, Others: b.foreign()}
	for _, o := range slices.SortedFunc(slices.Values(b.owners), compareOwners) {
		line := b.service(o)
		card.Services, card.Listeners = append(card.Services, line), card.Listeners+len(line.Ports)
	}
	return card
}
