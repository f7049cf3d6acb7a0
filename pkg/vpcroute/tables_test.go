package vpcroute

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
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
		missing   []string
	}{
		"system table": {tables: []alicloud.RouteTable{custom, system}, want: []string{"vtb-system"}},
		"tables of vSwitches": {vSwitches: []string{"vsw-3", "vsw-1", "vsw-2"}, tables: []alicloud.RouteTable{system, custom},
			want: []string{"vtb-custom", "vtb-system"}},
		"tables with a tag": {tag: &pods, tables: []alicloud.RouteTable{system, custom}, want: []string{"vtb-custom"}},
		"tag and vSwitch together": {tag: &pods, vSwitches: []string{"vsw-1", "vsw-3"}, tables: []alicloud.RouteTable{system, custom},
			want: []string{"vtb-system", "vtb-custom"}},
		"a tag that no table has": {tag: &alicloud.Tag{Key: "pods", Value: "no"}, tables: []alicloud.RouteTable{system, custom},
			missing: []string{"tag pods=no"}},
		"a vSwitch without table": {vSwitches: []string{"vsw-1", "vsw-9"}, tables: []alicloud.RouteTable{system, custom},
			want: []string{"vtb-system"}, missing: []string{"vSwitch vsw-9"}},
		"no system table":             {tables: []alicloud.RouteTable{custom}, missing: []string{"the system table"}},
		"no table that may be listed": {missing: []string{"the system table"}},
	} {
		config := testConfig()
		config.VSwitchIDs, config.TableTag = test.vSwitches, test.tag
		got := SelectTables(config, test.tables)
		if diff := cmp.Diff(test.want, got.IDs); diff != "" {
			t.Errorf("%s: tables (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.missing, got.Missing); diff != "" {
			t.Errorf("%s: missing (-want +got):\n%s", name, diff)
		}
	}
}

func TestSelectNodeTables(t *testing.T) {
	t.Parallel()
	custom := alicloud.VSwitch{ID: "vsw-1", RouteTableID: "vtb-custom", CIDRBlock: "10.1.0.0/24"}
	system := alicloud.VSwitch{ID: "vsw-2", RouteTableID: "vtb-system", InSystemTable: true, CIDRBlock: "10.1.1.0/24"}
	other := alicloud.VSwitch{ID: "vsw-3", RouteTableID: "vtb-other", CIDRBlock: "10.1.2.0/24"}
	at := func(address string) *corev1.Node {
		return nodeOf(0, func(node *corev1.Node) { node.Status.Addresses[0].Address = address })
	}
	for name, test := range map[string]struct {
		nodes     []*corev1.Node
		vSwitches []alicloud.VSwitch
		want      []string
	}{
		"nodes in one": {[]*corev1.Node{at("10.1.0.7")}, []alicloud.VSwitch{custom, system, other}, []string{"vtb-custom"}},
		"nodes in two": {[]*corev1.Node{at("10.1.0.7"), at("10.1.1.7")}, []alicloud.VSwitch{custom, system, other},
			[]string{"vtb-custom", "vtb-system"}},
		"a node in none": {[]*corev1.Node{at("10.9.0.7"), at("10.1.2.7")}, []alicloud.VSwitch{custom, system, other},
			[]string{"vtb-other"}},
		"no node":                  {nil, []alicloud.VSwitch{custom, system}, []string{"vtb-system"}},
		"no node, no system table": {nil, []alicloud.VSwitch{custom}, nil},
		"no vSwitch is known":      {[]*corev1.Node{at("10.1.0.7")}, nil, nil},
	} {
		if diff := cmp.Diff(test.want, SelectNodeTables(test.nodes, test.vSwitches).IDs); diff != "" {
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
		c := newCluster(t, a, func(o *Options) { o.API, o.Config.TableIDs = a.ClientOf("limited", "secret"), []string{testTable} })
		nodes, want := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		c.wantRoutes(testTable, want)
	})
}

// TestQuotaWarning: from 80 % of the quota on, one event says so before anything fails.
func TestQuotaWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(20)
		c := newCluster(t, a, func(o *Options) { o.Quota = func() Quota { return Quota{Value: 20, Origin: "configured"} } })
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

// TestQuotaText: the event says where the value of the quota is known from, and where to ask for more. A table that holds more than a value
// that is only assumed shows that the quota is larger: there is no event.
func TestQuotaText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quota       Quota
		holds, adds int
		want        []string
	}{
		"configured": {Quota{Value: 20, Origin: "configured"}, 15, 2,
			[]string{"17 custom entries; the quota vpc_quota_route_entrys_num is 20 (value: configured)", "https://quotas.console.aliyun.com/"}},
		"published": {Quota{Value: 20, Origin: "published", Advice: "say so", Assumed: true}, 20, 2,
			[]string{"22 custom entries", "(value: published)", "; if the account has more, say so"}},
		"raised":               {Quota{Value: 20, Origin: "published", Assumed: true}, 21, 2, nil},
		"configured, and more": {Quota{Value: 20, Origin: "configured"}, 21, 0, []string{"21 custom entries"}},
	} {
		recorder := record.NewFakeRecorder(10)
		on := &table{id: "vtb-" + name, custom: test.holds}
		reporter{events: events.New(recorder, 0)}.tableQuota(&plan{table: on, create: make([]route, test.adds)}, nodeOf(0), test.quota)
		text := ""
		if len(recorder.Events) > 0 {
			text = <-recorder.Events
		}
		if (text != "") != (test.want != nil) {
			t.Errorf("%s: event %q", name, text)
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: event %q, want %q", name, text, want)
			}
		}
	}
}

// TestQuotaExceeded: a table that holds more than a value that nobody has configured shows that the quota is larger.
func TestQuotaExceeded(t *testing.T) {
	t.Parallel()
	for holds, want := range map[int]bool{20: false, 21: true} {
		if got := (Quota{Value: 20, Assumed: true}).exceeded(holds); got != want {
			t.Errorf("%d entries of an assumed quota of 20: exceeded %t", holds, got)
		}
	}
	if (Quota{Value: 20}).exceeded(21) {
		t.Error("a configured quota counts as exceeded")
	}
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
		began := time.Now()
		c.busySince.Store(&began)
		time.Sleep(waits.PassOfRoutes)
		if err := check.Check(nil); err != nil {
			t.Errorf("after %s: %v", waits.PassOfRoutes, err)
		}
		time.Sleep(time.Second)
		if check.Check(nil) == nil {
			t.Error("healthy although the pass does not end")
		}
	})
}
