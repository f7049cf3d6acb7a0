package console

import (
	"cmp"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

type loadBalancer struct {
	ID, Name, Status, Address, AddressType, Loopback, VSwitch string
	Tags                                                      cloud.Tags
	Listeners                                                 []listener
	Groups                                                    []group
	Backends, Abnormal                                        int
	// Open cards show what they hold without a click: the few that fit a screen.
	Open bool
}

type listener struct {
	Port                                                         int
	Protocol, Status, Scheduler, Group, Check, Forward, Endpoint string
}

type group struct {
	ID, Name string
	Backends []backend
}

type backend struct {
	Server, Type, Address, Description string
	// Status is set while the backend server joins or leaves.
	Status       string
	Port, Weight int
	// Health has one entry for each listener that sends to the group.
	Health []health
}

type health struct{ Listener, Status string }

// openCards is how many load balancers may exist for their cards to begin open.
const openCards = 4

// loadBalancers copies those that match and counts the backend servers of the shown ones that failed their checks.
func (c *Console) loadBalancers(query string, now time.Time) (list[loadBalancer], int) {
	s, found, abnormal := c.options.Store, filtered[loadBalancer]{query: query}, 0
	for lb := range s.LoadBalancers.All() {
		found.offer(func() loadBalancer {
			card := c.loadBalancer(lb, now)
			abnormal += card.Abnormal
			return card
		}, lb.ID, lb.Name, lb.Address)
	}
	for i := range found.Items {
		found.Items[i].Open = found.Total <= openCards
	}
	return found.list, abnormal
}

func (c *Console) loadBalancer(lb *cloud.LoadBalancer, now time.Time) loadBalancer {
	v := loadBalancer{
		ID: lb.ID, Name: lb.Name, Status: lb.Status, Address: lb.Address, AddressType: lb.AddressType,
		Loopback: c.options.Network.LoopbackAddress(lb.Address), VSwitch: lb.VSwitchID, Tags: append(cloud.Tags{}, lb.Tags...),
	}
	for _, l := range lb.SortedListeners() {
		v.Listeners = append(v.Listeners, c.listener(lb, l, now))
	}
	for _, id := range lb.Groups {
		g, ok := c.options.Store.ServerGroups.Get(id)
		if !ok {
			continue
		}
		view := c.group(lb, g, now)
		v.Groups = append(v.Groups, view)
		v.Backends += len(view.Backends)
		for _, m := range view.Backends {
			for _, h := range m.Health {
				if h.Status == "abnormal" {
					v.Abnormal++
				}
			}
		}
	}
	return v
}

func (c *Console) listener(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) listener {
	v := listener{
		Port: l.Port, Protocol: l.Protocol, Status: l.Phase.At(now), Scheduler: l.Attributes["Scheduler"], Group: l.ServerGroupID,
		Check: "off", Endpoint: c.options.Network.Endpoint(lb.ListenerID(l.ListenerKey)),
	}
	if g, ok := c.options.Store.ServerGroups.Get(l.ServerGroupID); ok {
		v.Group = cmp.Or(g.Name, g.ID)
	}
	if checks(l) {
		v.Check = l.Attributes["HealthCheckType"] + " every " + l.Attributes["HealthCheckInterval"] + "s"
	}
	if l.Attributes["ListenerForward"] == "on" {
		v.Forward = l.Attributes["ForwardPort"]
	}
	return v
}

func checks(l *cloud.Listener) bool {
	return l.Attributes["HealthCheckSwitch"] == "on" || l.Attributes["HealthCheck"] == "on"
}

func (c *Console) group(lb *cloud.LoadBalancer, g *cloud.ServerGroup, now time.Time) group {
	v := group{ID: g.ID, Name: g.Name}
	users := lb.UsedBy(g.ID)
	for i, b := range g.Backends {
		if i == shown {
			break
		}
		m := backend{Server: b.ServerID, Type: b.Type, Address: b.ServerIP, Description: b.Description, Port: b.Port, Weight: b.Weight}
		for _, l := range users {
			status := "unavailable"
			if checks(l) && l.Phase.At(now) == cloud.ListenerRunning && c.options.Store.Health != nil {
				if found, checked := c.options.Store.Health(lb.ListenerID(l.ListenerKey), b.BackendID()); checked {
					status = found.Status
				}
			}
			m.Health = append(m.Health, health{portName(l), status})
		}
		v.Backends = append(v.Backends, m)
	}
	return v
}

type table struct {
	ID, Name, VPC, Type string
	Entries             list[entry]
}

type entry struct {
	CIDR, Status, NextHopType, NextHop, NextHopName, Name string
	System                                                bool
}

// tables copies the entries that match and counts all.
func (c *Console) tables(query string, now time.Time) (list[table], int) {
	s, found, total := c.options.Store, list[table]{}, 0
	for t := range s.RouteTables.All() {
		entries := filtered[entry]{query: query}
		for e := range t.Entries.All() {
			name := ""
			if i, ok := s.Instances.Get(e.NextHopID); ok && i.Name != i.ID {
				name = i.Name
			}
			entries.offer(func() entry {
				return entry{e.CIDR.String(), e.Phase.At(now), e.NextHopType, e.NextHopID, name, e.Name, e.System}
			}, e.CIDR.String(), e.NextHopID, name, e.Name, t.ID)
		}
		total += t.Entries.Len()
		found.Total++
		if len(found.Items) < shown {
			found.Items = append(found.Items, table{t.ID, t.Name, t.VPCID, t.Type, entries.list})
		}
	}
	return found, total
}

type instance struct {
	ID, Name, Status, Zone, VSwitch, IP, Loopback, Type string
}

// instances copies those that match and counts those of all that do not run.
func (c *Console) instances(query string, now time.Time) (list[instance], int) {
	found, off := filtered[instance]{query: query}, 0
	for i := range c.options.Store.Instances.All() {
		if i.Status(now) != cloud.Running {
			off++
		}
		found.offer(func() instance {
			return instance{i.ID, i.Name, i.Status(now), i.ZoneID, i.VSwitchID, i.PrivateIP, c.options.Network.LoopbackAddress(i.PrivateIP), i.Type}
		}, i.ID, i.Name, i.PrivateIP, i.ZoneID)
	}
	return found.list, off
}

// portName is a listener in the form that its health is shown with.
func portName(l *cloud.Listener) string { return l.Protocol + "/" + strconv.Itoa(l.Port) }
