package vpc

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func batchParams(limit int) []api.Param {
	entries := api.ObjectsOf("RouteEntries", limit,
		api.Str("RouteTableId"), api.Str("RouteEntryId"), api.Str("DstCidrBlock"), api.Str("NextHop"),
		api.Str("NextHopType", api.OneOf(nextHopTypes...)), api.Str("IpVersion", api.OneOf("4", "6")), api.Str("Name", api.Len(0, 128)),
		api.Str("Description", api.Len(0, 256)), api.Str("Describption", api.Len(0, 256)))
	api.Required(&entries)
	return []api.Param{entries}
}

// Item codes of the batch calls, which are not the codes of the single calls.
const (
	itemDuplicate = "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"
	itemBusy      = "VPC_ROUTE_ENTRY_STATUS_ERROR"
	itemMissing   = "VPC_ROUTER_ENTRY_NOT_EXIST"
)

type batchAnswer struct {
	SuccessCount, FailedCount int
	RouteEntryIds             []string `json:",omitempty"` //nolint:revive // names on the wire
	FailedRouteEntries        []failedEntry
}

type failedEntry struct { //nolint:revive // names on the wire
	DstCidrBlock, NextHop, RouteEntryId, FailedCode, FailedMessage string
}

// holdBatch keeps the VPCs of the entries busy: one VPC carries out one batch at a time.
func (v service) holdBatch(c *api.Call) []string {
	var keys []string
	seen := map[string]bool{}
	for _, o := range c.Objects("RouteEntries") {
		if t, ok := v.tableOf(o); ok && !seen[t.VPCID] {
			seen[t.VPCID] = true
			keys = append(keys, "routes/"+t.VPCID)
		}
	}
	return keys
}

// holdTable keeps the VPC of a single call's table busy.
func (v service) holdTable(c *api.Call) []string {
	if t, ok := v.RouteTables.Get(c.Str("RouteTableId")); ok {
		return []string{"routes/" + t.VPCID}
	}
	if t, _, err := v.entryToDelete(c); err == nil {
		return []string{"routes/" + t.VPCID}
	}
	return nil
}

func (v service) tableOf(o api.Params) (*cloud.RouteTable, bool) {
	if t, ok := v.RouteTables.Get(o.Str("RouteTableId")); ok {
		return t, true
	}
	if id := o.Str("RouteEntryId"); id != "" {
		for t := range v.RouteTables.All() {
			if _, ok := t.Entries.Get(id); ok {
				return t, true
			}
		}
	}
	return nil, false
}

// beginBatch checks that a batch may start: every table exists, none has entries in transition, and the last batch of
// each VPC has settled.
func (v service) beginBatch(c *api.Call) ([]*cloud.RouteTable, error) {
	items := c.Objects("RouteEntries")
	tables := make([]*cloud.RouteTable, len(items))
	for i, o := range items {
		t, ok := v.tableOf(o)
		if !ok && o.Str("RouteTableId") != "" {
			return nil, api.NotFound("InvalidRouteTableId.NotFound", "The specified route table %s does not exist.", o.Str("RouteTableId"))
		}
		if !ok && o.Str("RouteEntryId") == "" {
			return nil, api.Missing("RouteEntries.N.RouteTableId")
		}
		tables[i] = t
	}
	for _, t := range tables {
		if t == nil {
			continue
		}
		if vpc, ok := v.VPCs.Get(t.VPCID); ok && c.Now.Before(vpc.BatchUntil) {
			return nil, c.Action.Busy
		}
		if t.Unsettled(c.Now) {
			return nil, unsettled(t)
		}
	}
	return tables, nil
}

func (v service) endBatch(tables []*cloud.RouteTable, c *api.Call) {
	for _, t := range tables {
		if t == nil {
			continue
		}
		if vpc, ok := v.VPCs.Get(t.VPCID); ok {
			vpc.BatchUntil = c.Now.Add(v.Settle)
		}
	}
}

func (v service) createEntries(c *api.Call) (any, error) {
	tables, err := v.beginBatch(c)
	if err != nil {
		return nil, err
	}
	if slices.Contains(tables, nil) {
		return nil, api.Missing("RouteEntries.N.RouteTableId")
	}
	if bad := v.checkNextHops(c, tables); bad != nil {
		return nil, bad
	}
	answer := batchAnswer{RouteEntryIds: []string{}, FailedRouteEntries: []failedEntry{}}
	for i, o := range c.Objects("RouteEntries") {
		if i < c.FailItems {
			answer.fail(o, busyItem(c), "Injected by a fault rule.")
			continue
		}
		description := o.Str("Description")
		if o.Has("Describption") && c.Holds("vpc.misspelled-description") {
			description = o.Or("Description", o.Str("Describption"))
		}
		e, bad := v.addEntry(tables[i], newEntry{
			o.Str("DstCidrBlock"), o.Str("NextHop"), o.Or("NextHopType", "Instance"), o.Str("Name"), description, o.Or("IpVersion", "4"),
		}, c)
		if bad != nil {
			answer.fail(o, createItemCode(c, bad.Code), bad.Message)
			continue
		}
		answer.SuccessCount++
		answer.RouteEntryIds = append(answer.RouteEntryIds, e.ID)
	}
	v.endBatch(tables, c)
	return answer, nil
}

// checkNextHops refuses the whole batch for one next hop, where the cloud does so.
func (v service) checkNextHops(c *api.Call, tables []*cloud.RouteTable) *api.Error {
	for i, o := range c.Objects("RouteEntries") {
		bad := v.checkNextHop(tables[i], newEntry{nextHop: o.Str("NextHop"), nextHopType: o.Or("NextHopType", "Instance")})
		if bad != nil && c.Holds("vpc.batch-in-part") && v.RouteBatchesWhole {
			return bad
		}
	}
	return nil
}

// busyItem is the code of an item whose entry is in transition, unless a fault rule has another one.
func busyItem(c *api.Call) string {
	switch {
	case c.ItemCode != "":
		return c.ItemCode
	case !c.Holds("vpc.batch-busy"):
		return "IncorrectRouteEntryStatus"
	}
	return itemBusy
}

// createItemCode translates the code of a single call into that of a batch item. Only the duplicate's is known from a
// source; the others keep the single call's.
func createItemCode(c *api.Call, code string) string {
	if code == "InvalidCIDRBlock.Duplicate" && c.Holds("vpc.batch-duplicate") {
		return itemDuplicate
	}
	return code
}

func (v service) deleteEntries(c *api.Call) (any, error) {
	tables, err := v.beginBatch(c)
	if err != nil {
		return nil, err
	}
	answer := batchAnswer{FailedRouteEntries: []failedEntry{}}
	for i, o := range c.Objects("RouteEntries") {
		e, ok := findBatchEntry(tables[i], o)
		switch {
		case i < c.FailItems:
			answer.fail(o, busyItem(c), "Injected by a fault rule.")
		case !ok && c.Holds("vpc.batch-missing"):
			answer.fail(o, itemMissing, "The route entry does not exist.")
		case !ok:
			answer.fail(o, "InvalidRouteEntry.NotFound", "The route entry does not exist.")
		case e.System:
			answer.fail(o, "OperationDenied", "A system route entry cannot be deleted.")
		case !e.Phase.Settled(c.Now):
			answer.fail(o, busyItem(c), "The route entry is in transition.")
		default:
			v.BeginDelete(tables[i], e, c.Now)
			answer.SuccessCount++
		}
	}
	v.endBatch(tables, c)
	return answer, nil
}

func findBatchEntry(t *cloud.RouteTable, o api.Params) (*cloud.RouteEntry, bool) {
	if t == nil {
		return nil, false
	}
	if id := o.Str("RouteEntryId"); id != "" {
		return t.Entries.Get(id)
	}
	return findEntry(t, o.Str("DstCidrBlock"), o.Str("NextHop"))
}

func (a *batchAnswer) fail(o api.Params, code, message string) {
	a.FailedCount++
	a.FailedRouteEntries = append(a.FailedRouteEntries, failedEntry{
		o.Str("DstCidrBlock"), o.Str("NextHop"), o.Str("RouteEntryId"), code, message,
	})
}
