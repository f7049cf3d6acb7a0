package alicloud

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
)

// Limits of the route entry calls. Sources: https://www.alibabacloud.com/help/en/vpc/api-createrouteentries and
// …/api-describerouteentrylist.
const (
	// MaxRouteEntriesPerCall caps the batch calls; only one batch may be in flight per VPC.
	MaxRouteEntriesPerCall = 50
	// The documented largest page of the list is 100; the official CCM asks for 500 in production. The client starts with
	// the large one and stays with the small one as soon as the cloud refuses it.
	largeRoutePage = 500
	smallRoutePage = 100
)

// Route entry states. While an entry of a table is Pending, every write to that table is refused as busy.
const (
	RoutePending   = "Pending"
	RouteAvailable = "Available"
	RouteDeleting  = "Deleting"
)

// NextHopInstance is the next hop type of a route to an ECS instance.
const NextHopInstance = "Instance"

// RouteTypeCustom marks entries that users and programs make; all others belong to the cloud.
const RouteTypeCustom = "Custom"

// RouteEntry is one entry of a route table.
type RouteEntry struct {
	ID      string
	TableID string
	// CIDR is the destination.
	CIDR string
	// Type is [RouteTypeCustom] for entries that are not the cloud's own.
	Type   string
	Status string
	// NextHops has more than one element for ECMP routes.
	NextHops    []NextHop
	Description string
}

// NextHop is where a route entry leads.
type NextHop struct {
	ID   string
	Type string
}

// DescribeRouteEntries returns the custom entries of a table; the cloud's own are left out. The entries of IPv6
// destinations are sure to be among them only with ipv6, which takes a call more: whether a list that asks for no IP
// version shows them is not documented.
func (c *Client) DescribeRouteEntries(ctx context.Context, tableID string, ipv6 bool) ([]RouteEntry, error) {
	if !ipv6 {
		return c.listRouteEntries(ctx, tableID, "")
	}
	entries, err := c.listRouteEntries(ctx, tableID, "ipv4")
	if err != nil {
		return nil, err
	}
	more, err := c.listRouteEntries(ctx, tableID, "ipv6")
	if err != nil {
		return nil, err
	}
	return append(entries, more...), nil
}

func (c *Client) listRouteEntries(ctx context.Context, tableID, ipVersion string) ([]RouteEntry, error) {
	filter := params{"RouteEntryType": RouteTypeCustom}.set("IpVersion", ipVersion)
	large := !c.smallRoutePages.Load()
	entries, err := c.describeRouteEntries(ctx, tableID, maps.Clone(filter), large)
	if large && HasCode(err, "InvalidParameter", "InvalidParameter.MaxResult", "InvalidMaxResult", "InvalidMaxResults") {
		c.smallRoutePages.Store(true)
		observeSize(sizeRoutePage, smallRoutePage)
		entries, err = c.describeRouteEntries(ctx, tableID, maps.Clone(filter), false)
	}
	if err != nil {
		return nil, fmt.Errorf("list the entries of route table %s: %w", tableID, err)
	}
	return entries, nil
}

func (c *Client) describeRouteEntries(ctx context.Context, tableID string, in params, large bool) ([]RouteEntry, error) {
	page := smallRoutePage
	if large {
		page = largeRoutePage
	}
	in.set("RouteTableId", tableID).setInt("MaxResult", page)
	var all []RouteEntry
	for number := 1; ; number++ {
		out := &describeRouteEntriesResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeRouteEntryList", productVPC, in, out); err != nil {
			return nil, err
		}
		if out.RouteEntrys == nil {
			return nil, out.unusable("DescribeRouteEntryList", noList)
		}
		for i := range out.RouteEntrys.RouteEntry {
			entry := out.RouteEntrys.RouteEntry[i].routeEntry()
			if entry.TableID != tableID {
				return nil, out.unusable("DescribeRouteEntryList", "asked for table %q, got an entry of %q", tableID, entry.TableID)
			}
			all = append(all, entry)
		}
		more, err := in.nextPage(out.answer, "DescribeRouteEntryList", out.NextToken, number)
		if err != nil {
			return nil, err
		}
		if !more {
			return all, nil
		}
	}
}

type describeRouteEntriesResponse struct {
	answer
	NextToken   string
	RouteEntrys *struct{ RouteEntry []wireRouteEntry }
}

type wireRouteEntry struct {
	RouteEntryId, RouteTableId, DestinationCidrBlock, Type, Status, Description string
	NextHops                                                                    struct {
		NextHop []struct{ NextHopId, NextHopType string }
	}
}

func (w *wireRouteEntry) routeEntry() RouteEntry {
	entry := RouteEntry{
		ID: w.RouteEntryId, TableID: w.RouteTableId, CIDR: w.DestinationCidrBlock,
		Type: w.Type, Status: w.Status, Description: w.Description,
	}
	for _, hop := range w.NextHops.NextHop {
		entry.NextHops = append(entry.NextHops, NextHop{ID: hop.NextHopId, Type: hop.NextHopType})
	}
	return entry
}

// NewRoute is a route entry to be made: packets for CIDR, IPv4 or IPv6, go to the ECS instance.
type NewRoute struct {
	TableID     string
	CIDR        string
	InstanceID  string
	Description string
}

// CreateRouteEntries makes up to [MaxRouteEntriesPerCall] entries in one call. The result has one element per route in
// their order: nil for an entry that is made or being made, else an [Error]. A second result that is not nil means that
// the call as a whole failed.
func (c *Client) CreateRouteEntries(ctx context.Context, routes []NewRoute) ([]error, error) {
	in := params{}
	for i, route := range routes {
		prefix := fmt.Sprintf("RouteEntries.%d.", i+1)
		in[prefix+"RouteTableId"] = route.TableID
		in[prefix+"DstCidrBlock"] = route.CIDR
		in[prefix+"NextHop"] = route.InstanceID
		in[prefix+"NextHopType"] = NextHopInstance
		in[prefix+"IpVersion"] = ipVersionOf(route.CIDR)
		in.set(prefix+"Description", route.Description)
	}
	out := &routeBatchResponse{answer: newAnswer()}
	if err := c.call(ctx, "CreateRouteEntries", productVPC, in, out); err != nil {
		return nil, err
	}
	results := make([]error, len(routes))
	for i, route := range routes {
		results[i] = out.failure("CreateRouteEntries", route.CIDR, route.InstanceID)
	}
	return results, nil
}

func ipVersionOf(cidr string) string {
	if strings.Contains(cidr, ":") {
		return "6"
	}
	return "4"
}

// DeleteRouteEntries removes up to [MaxRouteEntriesPerCall] entries in one call, each named by table, CIDR and next hop.
// The results are those of [Client.CreateRouteEntries].
func (c *Client) DeleteRouteEntries(ctx context.Context, entries []RouteEntry) ([]error, error) {
	in := params{}
	for i := range entries {
		prefix := fmt.Sprintf("RouteEntries.%d.", i+1)
		in[prefix+"RouteTableId"] = entries[i].TableID
		in[prefix+"RouteEntryId"] = entries[i].ID
		in[prefix+"DstCidrBlock"] = entries[i].CIDR
		in.set(prefix+"NextHop", entries[i].nextHopID())
	}
	out := &routeBatchResponse{answer: newAnswer()}
	if err := c.call(ctx, "DeleteRouteEntries", productVPC, in, out); err != nil {
		return nil, err
	}
	results := make([]error, len(entries))
	for i := range entries {
		results[i] = out.failure("DeleteRouteEntries", entries[i].CIDR, entries[i].nextHopID())
	}
	return results, nil
}

func (e *RouteEntry) nextHopID() string {
	if len(e.NextHops) == 0 {
		return ""
	}
	return e.NextHops[0].ID
}

// routeBatchResponse has HTTP status 200 also when single entries, or all, failed.
type routeBatchResponse struct {
	answer
	FailedRouteEntries []struct {
		DstCidrBlock, NextHop, FailedCode, FailedMessage string
	}
}

// failure finds the entry's own failure by CIDR and next hop. The next hop alone, by which the official CCM matches,
// names several entries when one instance carries more than one CIDR or table.
func (r *routeBatchResponse) failure(action, cidr, nextHop string) error {
	for _, failed := range r.FailedRouteEntries {
		if sameCIDR(failed.DstCidrBlock, cidr) && (failed.NextHop == "" || failed.NextHop == nextHop) {
			return &Error{Action: action, Code: cloudText(failed.FailedCode), Status: 200, RequestID: cloudText(r.RequestId),
				Message: cloudText(failed.FailedMessage)}
		}
	}
	return nil
}

// sameCIDR compares ranges, not texts: an IPv6 range has many spellings.
func sameCIDR(a, b string) bool {
	first, errA := netip.ParsePrefix(a)
	second, errB := netip.ParsePrefix(b)
	return a == b || errA == nil && errB == nil && first == second
}
