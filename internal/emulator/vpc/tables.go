package vpc

import (
	"net/netip"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func describeTablesParams() []api.Param {
	return append(api.Numbered(pageLimit), api.Str("VpcId"), api.Str("RouteTableId"), api.Str("RouteTableName"),
		api.Str("RouteTableType", api.OneOf("System", "Custom")), api.Str("RouterId"),
		api.Str("RouterType", api.OneOf("VRouter", "VBR")), api.Str("ResourceGroupId"), cloud.TagParams(cloud.MaxTags))
}

type tableView struct { //nolint:revive // names on the wire
	RouteTableId, RouteTableName, RouteTableType, RouterId, RouterType string
	VpcId, Status, AssociateType, ResourceGroupId                      string
	Description, CreationTime                                          string
	VSwitchIds                                                         struct{ VSwitchId []string }
	Tags                                                               struct{ Tag []cloud.TagView }
}

func (v service) describeTables(c *api.Call) (any, error) {
	tags := cloud.TagsIn(c)
	all := v.RouteTables.Select(func(t *cloud.RouteTable) bool {
		return passes(c, []filter{
			{"VpcId", t.VPCID}, {"RouteTableId", t.ID}, {"RouteTableName", t.Name}, {"RouteTableType", t.Type},
			{"RouterId", t.RouterID}, {"RouterType", "VRouter"},
		}) && c.Sees(t.Created) && t.Tags.Match(tags)
	})
	success := api.Object{{Name: "Code", Value: ""}, {Name: "Message", Value: ""}, {Name: "Success", Value: true}}
	return append(success,
		api.NumberedList(c, all, defaultPage, "RouterTableList", "RouterTableListType", func(t *cloud.RouteTable) tableView {
			return v.tableView(t, c)
		})...), nil
}

func (v service) tableView(t *cloud.RouteTable, c *api.Call) tableView {
	view := tableView{
		RouteTableId: t.ID, RouteTableName: t.Name, RouteTableType: t.Type, RouterId: t.RouterID, RouterType: "VRouter",
		VpcId: t.VPCID, Status: t.Phase.At(c.Now), AssociateType: t.AssociateType, Description: t.Description,
		CreationTime: cloud.Timestamp(t.Created),
	}
	view.VSwitchIds.VSwitchId = []string{}
	for _, s := range v.VSwitchesOf(t.VPCID) {
		if s.RouteTableID == t.ID {
			view.VSwitchIds.VSwitchId = append(view.VSwitchIds.VSwitchId, s.ID)
		}
	}
	view.Tags.Tag = t.Tags.Views()
	return view
}

func describeEntriesParams(limit int) []api.Param {
	return append(api.Tokened("MaxResult", limit), api.Str("RouteTableId", api.Required), api.Str("RouteEntryId"),
		api.Str("RouteEntryName"), api.Str("RouteEntryType", api.OneOf("Custom", "System", "BGP", "CEN")),
		api.Str("DestinationCidrBlock"), api.ListOf("DestCidrBlockList", 20), api.Str("IpVersion", api.OneOf("IPv4", "IPv6", "ipv4", "ipv6")),
		api.Str("NextHopId"), api.Str("NextHopType"), api.Str("ServiceType"))
}

type entryView struct { //nolint:revive // names on the wire
	RouteEntryId, RouteEntryName, RouteTableId, DestinationCidrBlock string
	IpVersion, Type, Status, Description, GmtModified                string
	NextHops                                                         struct{ NextHop []nextHopView }
}

type nextHopView struct { //nolint:revive // names on the wire
	NextHopId, NextHopType string
	Weight, Enabled        int
	NextHopRegionId        string
}

func (v service) describeEntries(c *api.Call) (any, error) {
	t, ok := v.RouteTables.Get(c.Str("RouteTableId"))
	if !ok {
		return nil, api.BadRequest("InvalidRouteTable.NotFound", "The specified route table %s does not exist.", c.Str("RouteTableId"))
	}
	wanted, err := wantedCIDRs(c)
	if err != nil {
		return nil, err
	}
	version := strings.ToLower(c.Str("IpVersion"))
	if most := published.RouteEntryPage; c.Int("MaxResult", 0) > most && !c.Holds("vpc.page-500") {
		return nil, api.Invalid("MaxResult", "at most %d", most)
	}
	all := t.Entries.Select(func(e *cloud.RouteEntry) bool {
		return entryMatches(c, e, wanted) && v.listed(c, e, version) && !v.lostHop(c, e)
	})
	items, next, pageErr := api.TokenPage(c, all, c.Int("MaxResult", defaultPage), cloud.Seq)
	if pageErr != nil {
		return nil, pageErr
	}
	var answer struct {
		NextToken   string
		RouteEntrys struct{ RouteEntry []entryView }
	}
	answer.NextToken = next
	answer.RouteEntrys.RouteEntry = make([]entryView, 0, len(items))
	for _, e := range items {
		answer.RouteEntrys.RouteEntry = append(answer.RouteEntrys.RouteEntry, v.entryView(t, e, c))
	}
	return answer, nil
}

// wantedCIDRs reads the two destination filters; nil means all.
// published are the limits of the vendor's pages; clients in production exceed some of them.
var published = cloud.Published()

// listed reports whether a list that names an IP version, or none, has an entry.
func (v service) listed(c *api.Call, e *cloud.RouteEntry, version string) bool {
	if version != "" {
		return version == strings.ToLower(ipVersion(e))
	}
	return !e.CIDR.Addr().Is6() || c.Holds("vpc.lists-both-versions") && !v.RouteListsIPv4
}

// lostHop reports whether an entry is gone because its instance is released, which no document says.
func (v service) lostHop(c *api.Call, e *cloud.RouteEntry) bool {
	if e.System || e.Learned != "" || e.NextHopType != "Instance" {
		return false
	}
	_, exists := v.Instances.Get(e.NextHopID)
	return !exists && !c.Holds("vpc.released-hop-stays")
}

func wantedCIDRs(c *api.Call) (map[netip.Prefix]bool, error) {
	list := c.List("DestCidrBlockList")
	if c.Has("DestinationCidrBlock") {
		list = append(list, c.Str("DestinationCidrBlock"))
	}
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // no filter
	}
	wanted := map[netip.Prefix]bool{}
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, malformed(s)
		}
		wanted[p.Masked()] = true
	}
	return wanted, nil
}

func entryMatches(c *api.Call, e *cloud.RouteEntry, wanted map[netip.Prefix]bool) bool {
	if !c.Sees(e.Created) || (wanted != nil && !wanted[e.CIDR]) {
		return false
	}
	return passes(c, []filter{
		{"RouteEntryId", e.ID}, {"RouteEntryName", e.Name}, {"RouteEntryType", entryType(e)},
		{"NextHopId", e.NextHopID}, {"NextHopType", e.NextHopType},
	})
}

func ipVersion(e *cloud.RouteEntry) string {
	if e.CIDR.Addr().Is6() {
		return "IPv6"
	}
	return "IPv4"
}

func entryType(e *cloud.RouteEntry) string {
	switch {
	case e.Learned != "":
		return e.Learned
	case e.System:
		return "System"
	}
	return "Custom"
}

func (v service) entryView(t *cloud.RouteTable, e *cloud.RouteEntry, c *api.Call) entryView {
	view := entryView{
		RouteEntryId: e.ID, RouteEntryName: e.Name, RouteTableId: t.ID, DestinationCidrBlock: e.CIDR.String(),
		IpVersion: ipVersion(e), Type: entryType(e), Status: e.Phase.At(c.Now), Description: e.Description,
		GmtModified: cloud.Timestamp(e.Created),
	}
	view.NextHops.NextHop = []nextHopView{{
		NextHopId: e.NextHopID, NextHopType: e.NextHopType, Enabled: 1, NextHopRegionId: v.Region,
	}}
	return view
}
