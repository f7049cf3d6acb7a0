package vpcroute

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tableIDs returns the ids of the managed tables and remembers them: a table that is added to the VPC later is managed
// only after somebody asked for it.
func (w *Writer) tableIDs(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	ids := w.order
	w.mu.Unlock()
	if len(ids) > 0 {
		return ids, nil
	}
	if ids = w.opts.Config.TableIDs; len(ids) == 0 {
		ids = systemTable(w.opts)
	}
	if len(ids) == 0 {
		tables, err := w.opts.API.DescribeRouteTables(ctx, w.opts.Config.VPCID)
		if err != nil {
			return nil, fmt.Errorf("find the route tables of %s: %w", w.opts.Config.VPCID, err)
		}
		if ids, err = selectTables(w.opts.Config, tables); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.order = ids
	return ids, nil
}

// systemTable returns the system table where it is what is wanted and a known vSwitch uses it, which saves the call that
// lists the tables.
func systemTable(opts Options) []string {
	if len(opts.Config.VSwitchIDs) > 0 || opts.Config.TableTag != nil {
		return nil
	}
	for _, vSwitch := range opts.VSwitches {
		if vSwitch.InSystemTable {
			return []string{vSwitch.RouteTableID}
		}
	}
	return nil
}

// selectTables chooses among the tables of the VPC: those of the configured vSwitches and of the configured tag, else the
// system table.
func selectTables(config Config, tables []alicloud.RouteTable) ([]string, error) {
	var ids []string
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, vSwitch := range config.VSwitchIDs {
		at := slices.IndexFunc(tables, func(t alicloud.RouteTable) bool { return slices.Contains(t.VSwitchIDs, vSwitch) })
		if at < 0 {
			return nil, fmt.Errorf("no route table of VPC %s is that of vSwitch %s", config.VPCID, vSwitch)
		}
		add(tables[at].ID)
	}
	if config.TableTag != nil {
		tagged, err := taggedTables(config, tables)
		if err != nil {
			return nil, err
		}
		for _, id := range tagged {
			add(id)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	at := slices.IndexFunc(tables, func(t alicloud.RouteTable) bool { return t.System })
	if at < 0 {
		return nil, fmt.Errorf("VPC %s has no system route table among its %d; name the tables to use with routeTableIDs",
			config.VPCID, len(tables))
	}
	return []string{tables[at].ID}, nil
}

func taggedTables(config Config, tables []alicloud.RouteTable) ([]string, error) {
	var ids []string
	for i := range tables {
		if slices.Contains(tables[i].Tags, *config.TableTag) {
			ids = append(ids, tables[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("none of the %d route tables of VPC %s carries the tag %s=%s", len(tables), config.VPCID, config.TableTag.Key, config.TableTag.Value)
	}
	return ids, nil
}
