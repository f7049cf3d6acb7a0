package vpc

import (
	"net/netip"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// shared is the address range of the cloud's own services, which no route may touch.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// nextHopTypes are the kinds of next hop that exist; the emulator routes to instances and stores the others.
var nextHopTypes = []string{
	"Instance", "HaVip", "RouterInterface", "NetworkInterface", "VpnGateway", "IPv6Gateway", "NatGateway", "Attachment",
	"VpcPeer", "Ipv4Gateway", "GatewayEndpoint", "Ecr", "GatewayLoadBalancerEndpoint",
}

func createEntryParams() []api.Param {
	return []api.Param{
		api.Str("RouteTableId", api.Required), api.Str("DestinationCidrBlock", api.Required),
		api.Str("NextHopId"), api.Str("NextHopType", api.OneOf(nextHopTypes...)),
		api.ObjectsOf("NextHopList", 16, api.Str("NextHopId"), api.Str("NextHopType"), api.Num("Weight", 0, 255)),
		api.Str("RouteEntryName", api.Len(1, 128)), api.Str("Description", api.Len(1, 256)), api.Str("ClientToken", api.Len(1, 64)),
	}
}

// newEntry is one entry to be created, from a single or a batch call.
type newEntry struct {
	cidr, nextHop, nextHopType, name, description string
	version                                       string // "4" or "6" in a batch, which must say it; "" in a single call
}

func (v service) createEntry(c *api.Call) (any, error) {
	if len(c.Objects("NextHopList")) > 0 {
		return nil, api.BadRequest("UnsupportedParameter", "NextHopList: entries with several next hops are not offered for this route table.")
	}
	// The token comes first: a repeated call gets its first result also while that result is still Pending.
	return v.Tokens.Once(c, mismatch(), func() (any, error) {
		t, err := v.writableTable(c.Str("RouteTableId"), c)
		if err != nil {
			return nil, err
		}
		e, bad := v.addEntry(t, newEntry{
			c.Str("DestinationCidrBlock"), c.Str("NextHopId"), c.Or("NextHopType", "Instance"), c.Str("RouteEntryName"), c.Str("Description"), "",
		}, c)
		if bad != nil {
			return nil, bad
		}
		return struct{ RouteEntryId string }{e.ID}, nil //nolint:revive // names on the wire
	})
}

// writableTable returns a table on which a single write may start now.
func (v service) writableTable(id string, c *api.Call) (*cloud.RouteTable, error) {
	t, ok := v.RouteTables.Get(id)
	if !ok {
		return nil, api.NotFound("InvalidRouteTableId.NotFound", "The specified route table %s does not exist.", id)
	}
	if t.Unsettled(c.Now) {
		return nil, unsettled(t)
	}
	return t, nil
}

// unsettled is the refusal of a write while an entry is in transition. The cloud answers a correct and a misspelled code;
// they take turns.
func unsettled(t *cloud.RouteTable) *api.Error {
	t.Refused++
	code := "IncorrectRouteEntryStatus"
	if t.Refused%2 == 0 {
		code = "IncorrcetRouteEntryStatus"
	}
	return api.BadRequest(code, "An entry of route table %s is Pending or Modifying.", t.ID)
}

// addEntry checks and creates one entry. The error is that of a single call; batches translate it.
func (v service) addEntry(t *cloud.RouteTable, n newEntry, c *api.Call) (*cloud.RouteEntry, *api.Error) {
	prefix, bad := v.checkCIDR(t, n, c)
	if bad != nil {
		return nil, bad
	}
	if _, exists := t.EntryByCIDR(prefix); exists {
		return nil, api.BadRequest("InvalidCIDRBlock.Duplicate", "The route table %s has an entry for %s already.", t.ID, prefix)
	}
	if t.CustomEntries() >= v.Limits.RouteEntriesPerTable {
		return nil, api.BadRequest("QuotaExceeded", "Route entry quota exceeded in this route table.")
	}
	if bad := v.checkNextHop(t, n); bad != nil {
		return nil, bad
	}
	end := cloud.Available
	if !c.Holds("vpc.entry-available") {
		end = created
	}
	e := &cloud.RouteEntry{
		Object: v.NewObject("rte"), Name: n.name, Description: n.description, CIDR: prefix,
		NextHopID: n.nextHop, NextHopType: n.nextHopType, Phase: v.Begin(cloud.Pending, end, c.Now),
	}
	t.AddEntry(e)
	return e, nil
}

// checkCIDR refuses destinations that are malformed, the cloud's own, or in conflict with a vSwitch.
func (v service) checkCIDR(t *cloud.RouteTable, n newEntry, c *api.Call) (netip.Prefix, *api.Error) {
	prefix, err := netip.ParsePrefix(n.cidr)
	if err != nil || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
		return prefix, malformed(n.cidr)
	}
	if bad := v.checkFamily(t, n, prefix); bad != nil {
		return prefix, bad
	}
	if prefix.Bits() > 0 && prefix.Overlaps(shared) && c.Holds("vpc.shared-range") {
		return prefix, api.BadRequest("InvalidCidrBlock", "The destination %s lies in %s.", prefix, shared)
	}
	if id := v.overlapping(t.VPCID, prefix); id != "" && c.Holds("vpc.vswitch-range") {
		return prefix, api.BadRequest("InvalidCidrBlock", "The destination %s overlaps with a range of vSwitch %s.", prefix, id)
	}
	return prefix, nil
}

// overlapping returns a vSwitch with a range that a destination overlaps with, "" for none. The default route overlaps with none.
func (v service) overlapping(vpcID string, prefix netip.Prefix) string {
	for _, s := range v.VSwitchesOf(vpcID) {
		if prefix.Bits() > 0 && (prefix.Overlaps(s.Prefix) || s.IPv6.IsValid() && prefix.Overlaps(s.IPv6)) {
			return s.ID
		}
	}
	return ""
}

// checkFamily refuses a destination of another family than a batch says, and IPv6 where the VPC has none. That a VPC must
// have it comes from https://www.alibabacloud.com/help/en/ipv6-gateway/user-guide/create-and-manage-ipv6-routes; the codes
// are assumed.
func (v service) checkFamily(t *cloud.RouteTable, n newEntry, prefix netip.Prefix) *api.Error {
	ipv6 := prefix.Addr().Is6()
	if n.version != "" && (n.version == "6") != ipv6 {
		return api.BadRequest("InvalidCidrBlock", "The destination %s is none of IP version %s.", prefix, n.version)
	}
	if vpc, ok := v.VPCs.Get(t.VPCID); ipv6 && (!ok || !vpc.IPv6.IsValid()) {
		return api.BadRequest("InvalidCidrBlock", "The destination %s is IPv6, which VPC %s has not.", prefix, t.VPCID)
	}
	return nil
}

func malformed(cidr string) *api.Error {
	return api.BadRequest("InvalidCidrBlock.Malformed", "%q is not a CIDR block.", cidr)
}

// created is the state that the prose of the pages has for what their fields call Available.
const created = "Created"

func (v service) checkNextHop(t *cloud.RouteTable, n newEntry) *api.Error {
	missing := api.NotFound("InvalidNextHopId.NotFound", "The specified next hop %q does not exist.", n.nextHop)
	switch n.nextHopType {
	case "Instance":
		if i, ok := v.Instances.Get(n.nextHop); !ok || i.VPCID != t.VPCID {
			return missing
		}
	case "NetworkInterface":
		if eni, ok := v.Interfaces.Get(n.nextHop); !ok || eni.VPCID != t.VPCID {
			return missing
		}
	default:
		if n.nextHop == "" {
			return missing
		}
	}
	return nil
}

func deleteEntryParams() []api.Param {
	return []api.Param{
		api.Str("RouteEntryId"), api.Str("RouteTableId"), api.Str("DestinationCidrBlock"), api.Str("NextHopId"),
		api.ObjectsOf("NextHopList", 16, api.Str("NextHopId"), api.Str("NextHopType"), api.Num("Weight", 0, 255)),
	}
}

func (v service) deleteEntry(c *api.Call) (any, error) {
	t, e, err := v.entryToDelete(c)
	if err != nil {
		return nil, err
	}
	if t.Unsettled(c.Now) {
		return nil, unsettled(t)
	}
	if e.System {
		return nil, api.BadRequest("OperationDenied", "The system entry %s cannot be deleted.", e.CIDR)
	}
	v.BeginDelete(t, e, c.Now)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

// entryToDelete finds the entry by its id, or by table, destination and next hop.
func (v service) entryToDelete(c *api.Call) (*cloud.RouteTable, *cloud.RouteEntry, error) {
	if id := c.Str("RouteEntryId"); id != "" {
		for t := range v.RouteTables.All() {
			if e, ok := t.Entries.Get(id); ok {
				return t, e, nil
			}
		}
		return nil, nil, api.BadRequest("InvalidRouteEntryId.NotFound", "The specified route entry %s does not exist.", id)
	}
	for _, name := range []string{"RouteTableId", "DestinationCidrBlock"} {
		if !c.Has(name) {
			return nil, nil, api.Missing(name)
		}
	}
	t, ok := v.RouteTables.Get(c.Str("RouteTableId"))
	if !ok {
		return nil, nil, api.NotFound("InvalidRouteTableId.NotFound", "The specified route table %s does not exist.", c.Str("RouteTableId"))
	}
	e, ok := findEntry(t, c.Str("DestinationCidrBlock"), c.Str("NextHopId"))
	if !ok {
		return nil, nil,
			api.BadRequest("InvalidRouteEntry.NotFound", "The route table %s has no entry for %s to %s.", t.ID, c.Str("DestinationCidrBlock"),
				c.Str("NextHopId"))
	}
	return t, e, nil
}

// findEntry finds an entry by destination; a next hop, when given, has to be the entry's.
func findEntry(t *cloud.RouteTable, cidr, nextHop string) (*cloud.RouteEntry, bool) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, false
	}
	e, ok := t.EntryByCIDR(prefix)
	if !ok || (nextHop != "" && e.NextHopID != nextHop) {
		return nil, false
	}
	return e, true
}
