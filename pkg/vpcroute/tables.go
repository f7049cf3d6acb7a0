package vpcroute

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Selection is which route tables of a VPC are managed.
type Selection struct {
	// IDs are the tables.
	IDs []string
	// Missing names what was asked for and does not exist.
	Missing []string
	// Ambiguous says that the VPC has several tables and nothing shows which of them the nodes use; the system table was chosen.
	Ambiguous bool
}

// usesNodeTables reports whether the tables are those of the nodes' vSwitches, which is the default.
func (c Config) usesNodeTables() bool {
	return len(c.TableIDs) == 0 && len(c.VSwitchIDs) == 0 && c.TableTag == nil
}

// choiceAge is how old what tables are chosen by may be: less than the shortest time between two reads for drift.
func (c Config) choiceAge() time.Duration { return c.Period * 4 / 5 }

// SelectNodeTables chooses the tables of the vSwitches in which nodes are. Without a node in a known vSwitch it is the system
// table, if a vSwitch uses it.
func SelectNodeTables(nodes []*corev1.Node, vSwitches []alicloud.VSwitch) Selection {
	known := subnets{vSwitches: vSwitches}
	ids := map[string]struct{}{}
	for _, node := range nodes {
		if id := known.tableOf(node); id != "" {
			ids[id] = struct{}{}
		}
	}
	if len(ids) == 0 {
		at := slices.IndexFunc(vSwitches, func(v alicloud.VSwitch) bool { return v.InSystemTable && v.RouteTableID != "" })
		if at >= 0 {
			ids[vSwitches[at].RouteTableID] = struct{}{}
		}
	}
	return Selection{IDs: slices.Sorted(maps.Keys(ids))}
}

// SelectTables chooses among all tables of the VPC: those of the configured vSwitches and of the configured tag, else the
// system table.
func SelectTables(config Config, tables []alicloud.RouteTable) Selection {
	var s Selection
	add := func(what string, matches func(alicloud.RouteTable) bool) {
		found := false
		for i := range tables {
			if !matches(tables[i]) {
				continue
			}
			found = true
			if !slices.Contains(s.IDs, tables[i].ID) {
				s.IDs = append(s.IDs, tables[i].ID)
			}
		}
		if !found {
			s.Missing = append(s.Missing, what)
		}
	}
	for _, id := range config.TableIDs {
		add(id, func(t alicloud.RouteTable) bool { return t.ID == id })
	}
	if len(config.TableIDs) > 0 {
		return s
	}
	for _, id := range config.VSwitchIDs {
		add("vSwitch "+id, func(t alicloud.RouteTable) bool { return slices.Contains(t.VSwitchIDs, id) })
	}
	if tag := config.TableTag; tag != nil {
		add(fmt.Sprintf("tag %s=%s", tag.Key, tag.Value), func(t alicloud.RouteTable) bool { return slices.Contains(t.Tags, *tag) })
	}
	if config.usesNodeTables() {
		add("the system table", func(t alicloud.RouteTable) bool { return t.System })
		s.Ambiguous = len(tables) > 1
	}
	return s
}

// Select chooses the managed tables as the controller does, from what is there.
func Select(config Config, nodes []*corev1.Node, vSwitches []alicloud.VSwitch, tables []alicloud.RouteTable) Selection {
	if config.usesNodeTables() {
		if s := SelectNodeTables(nodes, vSwitches); len(s.IDs) > 0 {
			return s
		}
	}
	return SelectTables(config, tables)
}

// choose returns the managed tables. They are chosen anew when the choice is older than a drift period or one of them is gone, and for
// new nodes. A table that was managed once stays so while it exists: its routes would otherwise be left to rot. When the choice
// cannot be made anew, the one before holds.
func (w *Writer) choose(ctx context.Context, d *desired) (Selection, error) {
	before := w.selected
	selection, err := w.selection(ctx, d)
	switch {
	case err != nil && len(before.IDs) > 0:
		klog.FromContext(ctx).Error(err, "Cannot determine which route tables to manage; using those known so far", "tables", before.IDs)
		return before, nil
	case err != nil:
		return Selection{}, err
	}
	for _, id := range before.IDs {
		if t := w.tables[id]; w.opts.Config.usesNodeTables() && !slices.Contains(selection.IDs, id) && t != nil && !tableGone(t.err) {
			selection.IDs = append(selection.IDs, id)
		}
	}
	w.selected = selection
	return selection, nil
}

func (w *Writer) selection(ctx context.Context, d *desired) (Selection, error) {
	config, now := w.opts.Config, time.Now()
	if len(config.TableIDs) > 0 {
		return Selection{IDs: config.TableIDs}, nil
	}
	if config.usesNodeTables() {
		known := w.network
		if selection := SelectNodeTables(slices.Collect(maps.Values(d.instances)), known.vSwitches); len(selection.IDs) > 0 {
			return selection, nil
		}
		if known.err != nil && !alicloud.IsForbidden(known.err) {
			return Selection{}, known.err
		}
	}
	switch {
	case len(w.selected.IDs) > 0 && now.Sub(w.listed) < config.choiceAge():
		return w.selected, nil
	case !w.retries.until(tableChoice{}, now).IsZero():
		return Selection{}, w.retries.failures[tableChoice{}].err
	}
	tables, err := w.opts.API.DescribeRouteTables(ctx, config.VPCID)
	selection := SelectTables(config, tables)
	if err != nil {
		err = fmt.Errorf("find the route tables of %s: %w", config.VPCID, err)
	} else if len(selection.IDs) == 0 {
		err = fmt.Errorf("none of the %d route tables of VPC %s is %v", len(tables), config.VPCID, selection.Missing)
	}
	if err != nil {
		w.retries.failed(tableChoice{}, err, time.Now())
		return Selection{}, err
	}
	w.listed = time.Now()
	w.retries.succeeded(tableChoice{})
	return selection, nil
}

// read makes sure that the table is known as it was at notBefore or later. After an error it is read again at its time, and after a write
// with an unknown result at once.
func (w *Writer) read(ctx context.Context, d *desired, id string, notBefore time.Time) {
	known := w.tables[id]
	switch {
	case known == nil:
		known = &table{id: id}
		w.tables[id] = known
	case known.err != nil && !w.retries.until(readOf(id), time.Now()).IsZero():
		return
	case known.err == nil && !known.stale && !known.read.Before(notBefore):
		return
	}
	t, err := w.fetch(ctx, id)
	if err == nil && lacksMany(d, known, t) {
		// One answer is not enough to take the network from many nodes.
		t, err = w.fetch(ctx, id)
	}
	if err != nil {
		known.err = fmt.Errorf("read route table %s: %w", id, err)
		if ctx.Err() == nil {
			w.retries.failed(readOf(id), err, time.Now())
			tableReadable.WithLabelValues(id).Set(0)
		}
		if tableGone(err) {
			w.listed, w.network.read = time.Time{}, time.Time{}
		}
		return
	}
	w.tables[id] = t
	w.retries.succeeded(readOf(id))
	tableReadable.WithLabelValues(id).Set(1)
	tableReadAt.WithLabelValues(id).Set(float64(t.read.Unix()))
	entriesGauge.WithLabelValues(id).Set(float64(t.custom))
}

func (w *Writer) fetch(ctx context.Context, id string) (*table, error) {
	asked := time.Now()
	entries, err := w.opts.API.DescribeRouteEntries(ctx, id, w.opts.Config.ipv6() || w.ipv6)
	if err != nil {
		return nil, err
	}
	return newTable(id, entries, w.opts.Config, asked), nil
}

// lacksMany reports whether many of the wanted entries are not there any more that worked, as the read before shows or, in a new process, the
// conditions of the nodes.
func lacksMany(d *desired, before, now *table) bool {
	worked, lost := 0, 0
	for cidr, want := range d.routes {
		if before.entries[cidr].Status == alicloud.RouteAvailable || before.read.IsZero() && conditionHolds(want.node, true) {
			worked++
			if _, still := now.entries[cidr]; !still {
				lost++
			}
		}
	}
	return lost > removalCap(worked)
}
