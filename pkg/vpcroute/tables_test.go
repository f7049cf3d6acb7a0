package vpcroute

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestSelectTables(t *testing.T) {
	t.Parallel()
	system := alicloud.RouteTable{ID: "vtb-system", System: true, VSwitchIDs: []string{"vsw-1", "vsw-2"}}
	pods := alicloud.Tag{Key: "pods", Value: "yes"}
	custom := alicloud.RouteTable{ID: "vtb-custom", VSwitchIDs: []string{"vsw-3"}, Tags: []alicloud.Tag{{Key: "other"}, pods}}
	for name, test := range map[string]struct {
		vSwitches []string
		tag       *alicloud.Tag
		tables    []alicloud.RouteTable
		want      []string
	}{
		"system table":                {tables: []alicloud.RouteTable{custom, system}, want: []string{"vtb-system"}},
		"tables of vSwitches":         {vSwitches: []string{"vsw-3", "vsw-1", "vsw-2"}, tables: []alicloud.RouteTable{system, custom}, want: []string{"vtb-custom", "vtb-system"}},
		"tables with a tag":           {tag: &pods, tables: []alicloud.RouteTable{system, custom}, want: []string{"vtb-custom"}},
		"tag and vSwitch together":    {tag: &pods, vSwitches: []string{"vsw-1", "vsw-3"}, tables: []alicloud.RouteTable{system, custom}, want: []string{"vtb-system", "vtb-custom"}},
		"a tag that no table has":     {tag: &alicloud.Tag{Key: "pods", Value: "no"}, tables: []alicloud.RouteTable{system, custom}},
		"a vSwitch without table":     {vSwitches: []string{"vsw-1", "vsw-9"}, tables: []alicloud.RouteTable{system, custom}},
		"no system table":             {tables: []alicloud.RouteTable{custom}},
		"no table that may be listed": {},
	} {
		config := testConfig()
		config.VSwitchIDs, config.TableTag = test.vSwitches, test.tag
		got, err := selectTables(config, test.tables)
		if (err != nil) != (test.want == nil) {
			t.Errorf("%s: error = %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: tables (-want +got):\n%s", name, diff)
		}
	}
}

func TestSystemTable(t *testing.T) {
	t.Parallel()
	custom := alicloud.VSwitch{ID: "vsw-1", RouteTableID: "vtb-custom"}
	system := alicloud.VSwitch{ID: "vsw-2", RouteTableID: "vtb-system", InSystemTable: true}
	for name, test := range map[string]struct {
		opts Options
		want []string
	}{
		"a vSwitch uses it":       {Options{VSwitches: []alicloud.VSwitch{custom, system}}, []string{"vtb-system"}},
		"no vSwitch uses it":      {Options{VSwitches: []alicloud.VSwitch{custom}}, nil},
		"no vSwitch is known":     {Options{}, nil},
		"tables of vSwitches":     {Options{VSwitches: []alicloud.VSwitch{system}, Config: Config{VSwitchIDs: []string{"vsw-1"}}}, nil},
		"tables that carry a tag": {Options{VSwitches: []alicloud.VSwitch{system}, Config: Config{TableTag: &alicloud.Tag{Key: "k"}}}, nil},
	} {
		if diff := cmp.Diff(test.want, systemTable(test.opts)); diff != "" {
			t.Errorf("%s: tables (-want +got):\n%s", name, diff)
		}
	}
}

// TestMinimalPermissions: a key that may only read and write route entries still routes.
func TestMinimalPermissions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: "limited", Secret: "secret", Permissions: []string{
			"vpc:DescribeRouteEntryList", "vpc:CreateRouteEntries", "vpc:DeleteRouteEntries",
		}})
		a := newAccount(t, emulator.Options{Config: config})
		a.put(3)
		c := newCluster(t, a, func(o *Options) { o.API, o.Config.TableIDs = a.clientOf("limited", "secret"), []string{testTable} })
		nodes, want := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		c.wantRoutes(testTable, want)
	})
}

// TestQuotaWarning: from 80 % of the quota on, one event tells it before anything fails.
func TestQuotaWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(20)
		c := newCluster(t, a, func(o *Options) { o.Quota = 20 })
		nodes, _ := nodesOf(17)
		c.set(nodes[:15]...)
		c.converge(time.Minute)
		if n := c.emitted()[reasonQuota]; n != 0 {
			t.Errorf("%d events at 15 of 20 entries", n)
		}
		c.set(nodes...)
		c.converge(time.Minute)
		c.kickPass()
		if n := c.emitted()[reasonQuota]; n != 1 {
			t.Errorf("%d events at 17 of 20 entries, want 1", n)
		}
	})
}

// TestHealth: a pass that does not end makes the controller unhealthy.
func TestHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newAccount(t, emulator.Options{}))
		check := c.HealthChecker()
		if err := check.Check(nil); err != nil {
			t.Errorf("before the first pass: %v", err)
		}
		c.busySince.Store(time.Now().UnixNano())
		time.Sleep(stuckAfter)
		if err := check.Check(nil); err != nil {
			t.Errorf("after %s: %v", stuckAfter, err)
		}
		time.Sleep(time.Second)
		if check.Check(nil) == nil {
			t.Error("healthy although the pass does not end")
		}
	})
}
