package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// tableChoice is the selection in force.
type tableChoice struct {
	Selection
	chosen time.Time
}

// choose returns the managed tables. They are chosen anew when the choice is older than maxAge or one of them is gone, and for
// new nodes. A table that was managed once stays so while it exists: its routes would otherwise be left to rot. When the choice
// cannot be made anew, the one before holds.
func (w *Writer) choose(ctx context.Context, d *desired, maxAge time.Duration) (Selection, error) {
	w.mu.Lock()
	before := w.choice
	w.mu.Unlock()
	selection, err := w.selection(ctx, d, before, maxAge)
	switch {
	case err != nil && len(before.IDs) > 0:
		klog.FromContext(ctx).Error(err, "Cannot determine which route tables to manage; using those known so far", "tables", before.IDs)
		return before.Selection, nil
	case err != nil:
		return Selection{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range before.IDs {
		if w.opts.Config.usesNodeTables() && !slices.Contains(selection.IDs, id) && !w.vanished[id] {
			selection.IDs = append(selection.IDs, id)
		}
	}
	w.choice.Selection = selection
	return selection, nil
}

func (w *Writer) selection(ctx context.Context, d *desired, before tableChoice, maxAge time.Duration) (Selection, error) {
	config := w.opts.Config
	if len(config.TableIDs) > 0 {
		return Selection{IDs: config.TableIDs}, nil
	}
	if config.usesNodeTables() {
		known := w.network.current(ctx, min(maxAge, vSwitchTTL))
		if selection := SelectNodeTables(slices.Collect(maps.Values(d.instances)), known.vSwitches); len(selection.IDs) > 0 {
			return selection, nil
		}
		if known.err != nil && !alicloud.IsForbidden(known.err) {
			return Selection{}, known.err
		}
	}
	if len(before.IDs) > 0 && time.Since(before.chosen) < maxAge {
		return before.Selection, nil
	}
	if failed := w.failure(anyTable); failed.err != nil {
		return Selection{}, failed.err
	}
	tables, err := w.opts.API.DescribeRouteTables(ctx, config.VPCID)
	selection := SelectTables(config, tables)
	switch {
	case err != nil:
		err = fmt.Errorf("find the route tables of %s: %w", config.VPCID, err)
	case len(selection.IDs) == 0:
		err = fmt.Errorf("none of the %d route tables of VPC %s is %v", len(tables), config.VPCID, selection.Missing)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed[anyTable] = failedRead{err, time.Now().Add(w.rereads.When(anyTable))}
		return Selection{}, err
	}
	delete(w.failed, anyTable)
	w.rereads.Forget(anyTable)
	w.choice.chosen = time.Now()
	clear(w.vanished)
	return selection, nil
}

// reading is one managed table in a pass: what it holds, or why that is not known.
type reading struct {
	id    string
	table *table // nil when it cannot be read
	err   error
	// retry is when the cloud is asked again.
	retry time.Time
}

// failedRead is why a table could not be read, and when it is read again.
type failedRead struct {
	err   error
	retry time.Time
}

// anyTable stands for the list of tables among what could not be read. No table has the empty id.
const anyTable = ""

// failure returns why the last read of the table failed, nothing once it is read again.
func (w *Writer) failure(id string) failedRead {
	w.mu.Lock()
	defer w.mu.Unlock()
	if failed := w.failed[id]; time.Now().Before(failed.retry) {
		return failed
	}
	return failedRead{}
}

// read returns the tables as they were at notBefore or later. Tables whose last write had an unknown result are always read
// again. A table that cannot be read does not keep the others from being read.
func (w *Writer) read(ctx context.Context, ids []string, notBefore time.Time) []reading {
	if now := time.Now(); notBefore.After(now) {
		notBefore = now
	}
	readings := make([]reading, len(ids))
	complete := true
	for i, id := range ids {
		readings[i] = w.remembered(id, notBefore)
		complete = complete && readings[i].err == nil && readings[i].table != nil
	}
	if complete {
		return readings
	}
	if err := w.take(ctx); err != nil {
		for i := range readings {
			if readings[i].err == nil {
				readings[i] = reading{id: ids[i], err: err}
			}
		}
		return readings
	}
	defer w.release()
	for i, id := range ids {
		// Somebody else may have read while this caller waited for its turn.
		if readings[i] = w.remembered(id, notBefore); readings[i].table == nil && readings[i].err == nil {
			readings[i] = w.readTable(ctx, id)
		}
	}
	return readings
}

// remembered returns a table that was read at notBefore or later, or the error of an attempt that is not due again. Without
// either both are nil.
func (w *Writer) remembered(id string, notBefore time.Time) reading {
	if failed := w.failure(id); failed.err != nil {
		return reading{id: id, err: failed.err, retry: failed.retry}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tables[id]
	if !ok || t.stale || t.read.Before(notBefore) {
		return reading{id: id}
	}
	return reading{id: id, table: t.clone()}
}

// readTable is called with the slot taken, so that no write of ours can overtake the answer.
func (w *Writer) readTable(ctx context.Context, id string) reading {
	t, err := w.fetch(ctx, id)
	if err == nil && w.shrunk(t) {
		// One answer is not enough to take the network from many nodes.
		t, err = w.fetch(ctx, id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		failed := failedRead{err: fmt.Errorf("read route table %s: %w", id, err)}
		if ctx.Err() == nil {
			failed.retry = time.Now().Add(readBackoff(err, w.rereads.When(id)))
			w.failed[id] = failed
			if tableGone(err) {
				w.vanished[id] = true
				w.choice.chosen = time.Time{}
				w.network.invalidate()
			}
			tableReadable.WithLabelValues(id).Set(0)
		}
		return reading{id: id, err: failed.err, retry: failed.retry}
	}
	if before, ok := w.tables[id]; ok && before.unconfirmed > 0 {
		w.pace.observed(t.read, t.settling())
	}
	delete(w.failed, id)
	w.rereads.Forget(id)
	delete(w.vanished, id)
	w.tables[id] = t
	tableReadable.WithLabelValues(id).Set(1)
	tableReadAt.WithLabelValues(id).Set(float64(t.read.Unix()))
	observeTable(t)
	return reading{id: id, table: t.clone()}
}

func (w *Writer) fetch(ctx context.Context, id string) (*table, error) {
	asked := time.Now()
	entries, err := w.opts.API.DescribeRouteEntries(ctx, id, w.opts.Config.ipv6() || w.ipv6.Load())
	if err != nil {
		return nil, err
	}
	return newTable(id, entries, w.opts.Config, asked), nil
}

// shrunk reports whether many of the entries that worked are not there any more.
func (w *Writer) shrunk(t *table) bool {
	worked := w.worked(t.id)
	lost := 0
	for _, cidr := range worked {
		if _, still := t.entries[cidr]; !still {
			lost++
		}
	}
	return lost > removalCap(len(worked))
}

// worked returns the CIDRs of the entries of a table that worked when it was read last. Before the first read of this process they are
// those of the nodes whose network is said to be available.
func (w *Writer) worked(id string) []netip.Prefix {
	var worked []netip.Prefix
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.tables[id]; ok {
		for cidr, e := range before.entries {
			if e.Status == alicloud.RouteAvailable {
				worked = append(worked, cidr)
			}
		}
		return worked
	}
	all, err := w.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return nil // the pass says so
	}
	for cidr, want := range desiredOf(all, w.opts.Config, w.opts.InstanceID, time.Now()).routes {
		if conditionHolds(want.node, true) {
			worked = append(worked, cidr)
		}
	}
	return worked
}

// refusedRead bounds the wait before a table is read again that the cloud refuses to show, although it may exist: the key lacks a
// permission, or an endpoint is that of another region. One call a minute is little, and whoever repairs it does not wait for long.
const refusedRead = time.Minute

// tableGone reports whether the cloud says that there is no such table.
func tableGone(err error) bool {
	return alicloud.HasCode(err, "InvalidRouteTableId.NotFound", "InvalidRouteTable.NotFound")
}

// readBackoff bounds the wait before a table is read again.
func readBackoff(err error, wait time.Duration) time.Duration {
	switch {
	case tableGone(err):
		return permanentRetry
	case permanent(err), alicloud.IsNotFound(err):
		return min(refusedRead, wait)
	}
	return wait
}

// readable returns the tables that could be read, the errors of the others, and when the first of them is read again.
func readable(readings []reading) (tables []*table, retry time.Time, err error) {
	var errs []error
	for _, r := range readings {
		if r.err != nil {
			errs = append(errs, r.err)
			if !r.retry.IsZero() && (retry.IsZero() || r.retry.Before(retry)) {
				retry = r.retry
			}
			continue
		}
		tables = append(tables, r.table)
	}
	return tables, retry, errors.Join(errs...)
}

// occupied are destinations that an entry of another type than Custom has: one that the cloud has made itself, or has learned from a CEN
// or a border router. The lists of a table leave them out, because there may be many of them. They are looked up when a wanted
// destination turns out to be taken, and count until a period has passed.
type occupied map[routeKey]occupant

type occupant struct {
	entry
	read time.Time
}

// note takes in what a read of the table has shown.
func (o occupied) note(table string, entries []alicloud.RouteEntry, now time.Time) {
	for i := range entries {
		cidr, err := netip.ParsePrefix(entries[i].CIDR)
		if err != nil || entries[i].Type == alicloud.RouteTypeCustom {
			continue
		}
		o[routeKey{table, cidr.Masked()}] = occupant{entry{RouteEntry: entries[i], cidr: cidr.Masked()}, now}
	}
}

// at returns the entry that has the destination.
func (o occupied) at(key routeKey, period time.Duration, now time.Time) (entry, bool) {
	found, ok := o[key]
	if ok && now.Sub(found.read) >= period {
		delete(o, key) // the next attempt shows whether it is still there
		return entry{}, false
	}
	return found.entry, ok
}

// lookUp finds out which entries have the destinations that the cloud calls taken.
func (w *Writer) lookUp(ctx context.Context, table string, cidrs []string) {
	entries, err := w.opts.API.DescribeRouteEntriesOf(ctx, table, cidrs)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot determine which entries have the pod CIDRs of nodes", "table", table, "cidrs", len(cidrs))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.occupied.note(table, entries, time.Now())
}
