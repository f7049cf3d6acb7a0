package emulator

import (
	"net/netip"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Topology is how packets travel in one VPC at one moment: a copy, for those who build that network.
type Topology struct {
	VSwitches  []VSwitch
	Interfaces []NetworkInterface
	Tables     []RouteTable
}

// VSwitch is a subnet and the route table that its traffic follows.
type VSwitch struct {
	ID, RouteTableID string
	Prefix           netip.Prefix
}

// NetworkInterface is who has which addresses.
type NetworkInterface struct {
	ID, InstanceID, VSwitchID string
	Addresses                 []netip.Addr
	// Running is false while packets for the interface are lost because its machine is off.
	Running bool
	// SourceDestCheck drops packets of others on their way to or from the interface.
	SourceDestCheck bool
}

// RouteTable is a route table with those custom entries that carry traffic. The first one of a VPC is its system table.
type RouteTable struct {
	ID     string
	Routes []Route
}

// Route is an Available custom entry. InstanceID is "" when its next hop is something else than an instance.
type Route struct {
	CIDR       netip.Prefix
	InstanceID string
}

// Topology reads one VPC; "" is the first one. An unknown VPC is empty.
func (e *Emulator) Topology(vpcID string) Topology {
	var t Topology
	e.store.View(func() {
		if vpcs := e.store.VPCs.Select(func(*cloud.VPC) bool { return true }); vpcID == "" && len(vpcs) > 0 {
			vpcID = vpcs[0].ID
		}
		now := e.store.Now()
		for _, v := range e.store.VSwitchesOf(vpcID) {
			t.VSwitches = append(t.VSwitches, VSwitch{ID: v.ID, RouteTableID: v.RouteTableID, Prefix: v.Prefix})
		}
		for _, eni := range e.store.Interfaces.Select(func(i *cloud.Interface) bool { return i.VPCID == vpcID }) {
			t.Interfaces = append(t.Interfaces, e.copyInterface(eni, now))
		}
		for _, table := range e.store.TablesOf(vpcID) {
			t.Tables = append(t.Tables, copyTable(table, now))
		}
	})
	return t
}

func (e *Emulator) copyInterface(eni *cloud.Interface, now time.Time) NetworkInterface {
	c := NetworkInterface{ID: eni.ID, InstanceID: eni.InstanceID, VSwitchID: eni.VSwitchID, SourceDestCheck: eni.SourceDestCheck}
	for _, ip := range eni.PrivateIPs {
		if addr, err := netip.ParseAddr(ip); err == nil {
			c.Addresses = append(c.Addresses, addr)
		}
	}
	if i, ok := e.store.Instances.Get(eni.InstanceID); ok {
		c.Running = i.Status(now) == cloud.Running
	} else {
		c.Running = e.store.IsContainer(eni.InstanceID)
	}
	return c
}

func copyTable(table *cloud.RouteTable, now time.Time) RouteTable {
	c := RouteTable{ID: table.ID}
	for entry := range table.Entries.All() {
		if entry.System || entry.Phase.At(now) != cloud.Available {
			continue
		}
		route := Route{CIDR: entry.CIDR}
		if entry.NextHopType == "Instance" {
			route.InstanceID = entry.NextHopID
		}
		c.Routes = append(c.Routes, route)
	}
	return c
}
