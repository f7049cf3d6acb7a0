package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// networkLoadBalancer is a card of an NLB.
type networkLoadBalancer struct {
	ID, Name, Status, DNSName, AddressType, VPC string
	Tags                                        cloud.Tags
	SecurityGroups                              []string
	Zones                                       []zone
	Listeners                                   []nlbListener
	Groups                                      []nlbGroup
	Backends, Unhealthy                         int
	CrossZone, Open                             bool
}

type zone struct{ Zone, VSwitch, Status, PrivateIP, PublicIP, IPv6 string }

type nlbListener struct {
	Ports, Protocol, Status, Group, Options string
	Endpoints                               []string
	// More is how many endpoints are not shown.
	More int
}

type nlbGroup struct {
	group
	Type, Protocol, Status, Scheduler, Check, Options string
}

// networkLoadBalancers copies those that match and counts the backend servers of the shown ones that failed their checks.
func (c *Console) networkLoadBalancers(query string, now time.Time) (list[networkLoadBalancer], int) {
	s, found, unhealthy := c.options.Store, filtered[networkLoadBalancer]{query: query}, 0
	for lb := range s.NLBs.All() {
		words := []string{lb.ID, lb.Name, lb.DNSName}
		for _, z := range lb.Zones {
			words = append(words, z.PrivateIP, z.PublicIP)
		}
		found.offer(func() networkLoadBalancer {
			card := c.networkLoadBalancer(lb, now)
			unhealthy += card.Unhealthy
			return card
		}, words...)
	}
	for i := range found.Items {
		found.Items[i].Open = found.Total <= openCards
	}
	return found.list, unhealthy
}

func (c *Console) networkLoadBalancer(lb *cloud.NLB, now time.Time) networkLoadBalancer {
	s := c.options.Store
	v := networkLoadBalancer{
		ID: lb.ID, Name: lb.Name, Status: lb.Phase.At(now), DNSName: lb.DNSName, AddressType: lb.AddressType, VPC: lb.VPCID,
		Tags: append(cloud.Tags{}, lb.Tags...), SecurityGroups: append([]string{}, lb.SecurityGroups...), CrossZone: lb.CrossZone,
	}
	for _, z := range lb.Zones {
		v.Zones = append(v.Zones, zone{z.ZoneID, z.VSwitchID, z.Status, z.PrivateIP, z.PublicIP, z.IPv6})
	}
	seen := map[string]bool{}
	for _, l := range s.NLBListenersOf(lb.ID, now) {
		v.Listeners = append(v.Listeners, c.nlbListener(l, now))
		g, ok := s.NLBGroups.Get(l.GroupID)
		if !ok || seen[g.ID] {
			continue
		}
		seen[g.ID] = true
		view := c.nlbGroup(g, now)
		v.Groups = append(v.Groups, view)
		v.Backends += len(g.LiveServers(now))
		for _, m := range view.Backends {
			for _, h := range m.Health {
				if h.Status == cloud.NLBUnhealthy {
					v.Unhealthy++
				}
			}
		}
	}
	return v
}

// endpointsShown is how many endpoints of a listener are shown: a range of ports has hundreds.
const endpointsShown = 6

func (c *Console) nlbListener(l *cloud.NLBListener, now time.Time) nlbListener {
	v := nlbListener{Ports: portsOf(l), Protocol: l.Protocol, Status: l.Phase.At(now), Group: l.GroupID, Options: options(
		option{"PROXY protocol", l.ProxyProtocol}, option{"ALPN " + l.ALPNPolicy, l.ALPNEnabled}, option{"client certificates", l.CAEnabled},
	)}
	if g, ok := c.options.Store.NLBGroups.Get(l.GroupID); ok {
		v.Group = cmp.Or(g.Name, g.ID)
	}
	endpoints := c.options.Network.Endpoints(l.ListenerID())
	for _, e := range endpoints[:min(len(endpoints), endpointsShown)] {
		v.Endpoints = append(v.Endpoints, e.LoopbackEndpoint)
	}
	v.More = len(endpoints) - len(v.Endpoints)
	return v
}

func portsOf(l *cloud.NLBListener) string {
	first, last := l.Ports()
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

type option struct {
	name string
	on   bool
}

// options joins the names of those that are on.
func options(all ...option) string {
	var on []string
	for _, o := range all {
		if o.on {
			on = append(on, o.name)
		}
	}
	return strings.Join(on, ", ")
}

// unusedGroups copies the server groups that no listener sends to and that match.
func (c *Console) unusedGroups(query string, now time.Time) list[nlbGroup] {
	s, found := c.options.Store, filtered[nlbGroup]{query: query}
	for g := range s.NLBGroups.All() {
		if len(s.NLBListenersTo(g.ID, now)) == 0 {
			found.offer(func() nlbGroup { return c.nlbGroup(g, now) }, g.ID, g.Name)
		}
	}
	return found.list
}

func (c *Console) nlbGroup(g *cloud.NLBGroup, now time.Time) nlbGroup {
	s := c.options.Store
	v := nlbGroup{
		group: group{ID: g.ID, Name: g.Name}, Type: g.Type, Protocol: g.Protocol, Status: g.Phase.At(now), Scheduler: g.Scheduler, Check: "off",
		Options: options(option{"any port", g.AnyPort}, option{"client addresses", g.PreserveClientIP}, option{"drain", g.ConnectionDrain}),
	}
	if h := g.HealthCheck; h.Enabled {
		v.Check = fmt.Sprintf("%s every %ds", h.Type, h.Interval)
	}
	users := s.NLBListenersTo(g.ID, now)
	for i, b := range g.LiveServers(now) {
		if i == shown {
			break
		}
		m := backend{Server: b.ID, Type: b.Type, Address: b.IP, Description: b.Description, Port: b.Port, Weight: b.Weight}
		if status := b.Phase.At(now); status != cloud.Available {
			m.Status = status
		}
		for _, l := range users {
			status, reason := s.NLBHealth(l, g, b)
			m.Health = append(m.Health, health{strings.TrimSpace(l.ListenerID().String() + " " + reason), status})
		}
		v.Backends = append(v.Backends, m)
	}
	return v
}

type job struct {
	ID, Status string
	Created    time.Time
}

// jobs copies the latest ones that match, and counts those that go on.
func (c *Console) jobs(query string, now time.Time) (list[job], int) {
	found, busy := filtered[job]{query: query}, 0
	all := c.options.Store.NLBJobs.Select(func(*cloud.NLBJob) bool { return true })
	for _, j := range slices.Backward(all) {

		if j.Phase.At(now) == cloud.JobProcessing {
			busy++
		}
		found.offer(func() job { return job{j.ID, j.Phase.At(now), j.Created} }, j.ID)
	}
	return found.list, busy
}

type securityGroup struct {
	ID, Name, Type, VPC string
	Rules               []securityRule
}

type securityRule struct {
	Policy, Protocol, Ports, Source, Description string
	Priority                                     int
}

// securityGroups copies those that match.
func (c *Console) securityGroups(query string) list[securityGroup] {
	found := filtered[securityGroup]{query: query}
	for g := range c.options.Store.SecurityGroups.All() {
		found.offer(func() securityGroup {
			v := securityGroup{ID: g.ID, Name: g.Name, Type: g.Type, VPC: g.VPCID}
			for _, r := range g.Rules {
				v.Rules = append(v.Rules,
					securityRule{r.Policy, r.Protocol, r.PortRange, cmp.Or(r.SourceCIDR, r.IPv6SourceCIDR), r.Description, r.Priority})
			}
			return v
		}, g.ID, g.Name)
	}
	return found.list
}
