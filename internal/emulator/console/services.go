package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service is a line about what a Kubernetes Service has on one load balancer. The cloud knows no Services: they are recognized by the names
// that cloud controller managers give to listeners, groups and backend servers.
type service struct {
	Name, Cluster, Product, Balancer, Address string
	// Group is the load balancer group, NAMESPACE/NAME, "" on a load balancer of no group.
	Group         string
	Ports         []servicePort
	Backends, Bad int
}

type servicePort struct{ Ports, Protocol, Status, Restriction string }

// owner is a Service as such a name has it. Unnamed owners are the value of the tag on a load balancer that has nothing else yet.
type owner struct{ cluster, namespace, name, unnamed string }

func (o owner) String() string {
	if o.name == "" {
		return o.unnamed
	}
	return o.namespace + "/" + o.name
}

// Forms of the names: k8s/PORT/NAME/NAMESPACE/CLUSTER on CLBs, and k8s.PORT.PROTOCOL.NAME.NAMESPACE.CLUSTER on NLBs.
const (
	partsOfCLBName = 5
	partsOfNLBName = 6
	namePrefix     = "k8s"
	// ownerTag is the tag of a load balancer that belongs to a Service.
	ownerTag = "kubernetes.do.not.delete"
)

// ownerIn reads such a name; false for any other text.
func ownerIn(text string) (owner, bool) {
	if parts := strings.Split(text, "/"); len(parts) == partsOfCLBName && parts[0] == namePrefix {
		return owner{name: parts[2], namespace: parts[3], cluster: parts[4]}, true
	}
	if parts := strings.Split(text, "."); len(parts) == partsOfNLBName && parts[0] == namePrefix {
		return owner{name: parts[3], namespace: parts[4], cluster: parts[5]}, true
	}
	return owner{}, false
}

// ownersIn adds the owners in texts, and if there are none at all, the one that a tag names.
func ownersIn(tags cloud.Tags, texts []string) []owner {
	found := map[owner]bool{}
	for _, text := range texts {
		if o, ok := ownerIn(text); ok {
			found[o] = true
		}
	}
	for _, tag := range tags {
		if tag.Key == ownerTag && len(found) == 0 {
			found[owner{unnamed: tag.Value}] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// balancer is a load balancer with the owners of what is on it, and how to copy what each of them has there.
type balancer struct {
	product, id, address, name string
	// group is the tag of its load balancer group, CLUSTER/NAMESPACE/NAME.
	group  string
	owners []owner
	// foreign are the listeners whose names are not those of a Service.
	foreign func() []servicePort
	copied  func(owner) service
}

func (b *balancer) words() []string { return []string{b.id, b.address, b.name} }

// service copies what an owner has.
func (b *balancer) service(of owner) service {
	line := b.copied(of)
	line.Product, line.Balancer, line.Address = b.product, b.id, b.address
	_, line.Group, _ = strings.Cut(b.group, "/")
	line.Name, line.Cluster = of.String(), of.cluster
	return line
}

// services copies the Services that match, by name, and counts the backend servers of the shown ones that failed their checks.
func (c *Console) services(balancers []*balancer, query string) (list[service], int) {
	type held struct {
		owner owner
		*balancer
	}
	var all []held
	for _, b := range balancers {
		for _, o := range b.owners {
			all = append(all, held{o, b})
		}
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Or(compareOwners(a.owner, b.owner), cmp.Compare(a.id, b.id)) })
	found, bad := filtered[service]{query: query}, 0
	for _, one := range all {
		found.offer(func() service {
			line := one.service(one.owner)
			bad += line.Bad
			return line
		}, append(one.words(), one.owner.String(), one.group)...)
	}
	return found.list, bad
}

func compareOwners(a, b owner) int {
	return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.cluster, b.cluster))
}

// balancers are all load balancers.
func (c *Console) balancers(now time.Time) []*balancer {
	return slices.Concat(c.clbs(now), c.nlbs(now))
}

func (c *Console) clbs(now time.Time) []*balancer {
	var all []*balancer
	for lb := range c.options.Store.LoadBalancers.All() {
		var texts []string
		for _, l := range lb.Listeners {
			texts = append(texts, l.Description)
		}
		for _, g := range c.groupsOf(lb) {
			texts = append(texts, g.Name)
			for _, b := range g.Backends {
				texts = append(texts, b.Description)
			}
		}
		all = append(all, &balancer{
			product: "CLB", id: lb.ID, address: lb.Address, name: lb.Name, group: groupIn(lb.Tags), owners: ownersIn(lb.Tags, texts),
			foreign: func() []servicePort { return foreignOnCLB(lb, now) },
			copied:  func(o owner) service { return c.onCLB(lb, o, now) },
		})
	}
	return all
}

func (c *Console) groupsOf(lb *cloud.LoadBalancer) []*cloud.ServerGroup {
	var groups []*cloud.ServerGroup
	for _, id := range lb.Groups {
		if g, ok := c.options.Store.ServerGroups.Get(id); ok {
			groups = append(groups, g)
		}
	}
	return groups
}

// onCLB is what a Service has on a CLB: its listeners, and the backend servers in its groups, or its own in a group of somebody else.
func (c *Console) onCLB(lb *cloud.LoadBalancer, of owner, now time.Time) service {
	line := service{}
	for _, l := range lb.SortedListeners() {
		if o, ok := ownerIn(l.Description); ok && o == of {
			line.Ports = append(line.Ports, portOfCLB(l, now))
		}
	}
	for _, g := range c.groupsOf(lb) {
		whole, _ := ownerIn(g.Name)
		for _, m := range c.group(lb, g, now).Backends {
			if its, ok := ownerIn(m.Description); (whole == of) || ok && its == of {
				line.count(m, "abnormal")
			}
		}
	}
	return line
}

func portOfCLB(l *cloud.Listener, now time.Time) servicePort {
	restriction := ""
	if l.Attributes["AclStatus"] == "on" {
		restriction = l.Attributes["AclType"] + " list " + l.Attributes["AclId"]
	}
	return servicePort{fmt.Sprint(l.Port), l.Protocol, l.Phase.At(now), restriction}
}

func foreignOnCLB(lb *cloud.LoadBalancer, now time.Time) (ports []servicePort) {
	for _, l := range lb.SortedListeners() {
		if _, ok := ownerIn(l.Description); !ok {
			ports = append(ports, portOfCLB(l, now))
		}
	}
	return ports
}

// count adds a backend server, which is bad if one of its checks has the status.
func (s *service) count(b backend, bad string) {
	s.Backends++
	if slices.ContainsFunc(b.Health, func(h health) bool { return h.Status == bad }) {
		s.Bad++
	}
}

func (c *Console) nlbs(now time.Time) []*balancer {
	var all []*balancer
	for lb := range c.options.Store.NLBs.All() {
		var texts []string
		for _, l := range c.options.Store.NLBListenersOf(lb.ID, now) {
			texts = append(texts, l.Description)
		}
		all = append(all, &balancer{
			product: "NLB", id: lb.ID, address: lb.DNSName, name: lb.Name, group: groupIn(lb.Tags), owners: ownersIn(lb.Tags, texts),
			foreign: func() []servicePort { return c.foreignOnNLB(lb, now) },
			copied:  func(o owner) service { return c.onNLB(lb, o, now) },
		})
	}
	return all
}

func (c *Console) foreignOnNLB(lb *cloud.NLB, now time.Time) (ports []servicePort) {
	for _, l := range c.options.Store.NLBListenersOf(lb.ID, now) {
		if _, ok := ownerIn(l.Description); !ok {
			ports = append(ports, portOfNLB(l, now))
		}
	}
	return ports
}

func portOfNLB(l *cloud.NLBListener, now time.Time) servicePort {
	return servicePort{portsOf(l), l.Protocol, l.Phase.At(now), ""}
}

func (c *Console) onNLB(lb *cloud.NLB, of owner, now time.Time) service {
	line, seen := service{}, map[string]bool{}
	for _, l := range c.options.Store.NLBListenersOf(lb.ID, now) {
		if o, ok := ownerIn(l.Description); !ok || o != of {
			continue
		}
		line.Ports = append(line.Ports, portOfNLB(l, now))
		g, ok := c.options.Store.NLBGroups.Get(l.GroupID)
		if !ok || seen[g.ID] {
			continue
		}
		seen[g.ID] = true
		for _, m := range c.nlbGroup(g, now).Backends {
			line.count(m, cloud.NLBUnhealthy)
		}
	}
	return line
}
