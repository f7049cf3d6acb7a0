package vpcroute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// twoTables is an account whose second vSwitch (10.2.0.0/16) uses a table of its own, with two instances in each vSwitch.
func twoTables(t *testing.T) *account {
	t.Helper()
	config := cloud.DefaultConfig()
	config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: "vtb-second", VPCID: testVPC})
	config.VSwitches[1].RouteTableID = "vtb-second"
	a := newAccount(t, emulator.Options{Config: config})
	a.put(2)
	for i := 2; i < 4; i++ {
		if _, err := a.PutInstance(fmt.Sprintf("i-%d", i),
			emulator.InstanceSpec{VSwitchID: "vsw-b", PrivateIP: fmt.Sprintf("10.2.0.%d", i+10)}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func inSecond(node *corev1.Node) {
	node.Status.Addresses[0].Address = strings.Replace(node.Status.Addresses[0].Address, "10.1.", "10.2.", 1)
}

// TestCustomTableOfNodesIsManaged: the tables of the nodes' vSwitches are managed by default, also of one whose first node joins
// later (the finding CustomTableOfNodesIsIgnored).
func TestCustomTableOfNodesIsManaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := twoTables(t)
		c := newCluster(t, a)
		c.set(nodeOf(0), nodeOf(1))
		c.converge(time.Minute)
		_, want := nodesOf(2)
		c.wantRoutes(testTable, want)
		c.wantRoutes("vtb-second", map[string]string{})

		c.set(nodeOf(0, networked), nodeOf(1, networked), nodeOf(2, inSecond, uninitialized), nodeOf(3, inSecond, uninitialized))
		c.kickPass()
		if _, no := c.available(); !slices.Equal(no, []string{"node-2", "node-3"}) {
			t.Errorf("nodes without network: %v, want the two that join", no)
		}
		c.converge(time.Minute)
		_, want = nodesOf(4)
		c.wantRoutes(testTable, want)
		c.wantRoutes("vtb-second", want)
		if yes, _ := c.available(); len(yes) != 4 {
			t.Errorf("nodes with network: %v", yes)
		}
	})
}

// TestOneBadTableStopsNoOther: a table that does not exist costs an event, and neither the routes nor the conditions of others.
func TestOneBadTableStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(5)
		c := newCluster(t, a, func(o *Options) { o.Config.TableIDs = []string{"vtb-deleted", testTable} })
		nodes, want := nodesOf(5)
		c.set(nodes...)
		before := a.Last()
		c.passFor(10 * time.Minute)
		c.wantRoutes(testTable, want)
		if yes, no := c.available(); len(yes) != 5 {
			t.Errorf("with network: %v, without: %v", yes, no)
		}
		if n := c.emitted()[reasonReadFailed]; n != 1 {
			t.Errorf("%d events about the table, want 1", n)
		}
		if n := a.Count(before); n > 15 {
			t.Errorf("%d calls in ten minutes", n)
		}
	})
}

// vpcAPI is the cloud's own client, for what a user does by hand.
func (a *account) vpcAPI() *vpcapi.Client {
	a.t.Helper()
	config := sdk.NewConfig().WithAutoRetry(false).WithScheme("HTTP")
	config.Transport = a.Transport()
	client, err := vpcapi.NewClientWithOptions(emulatortest.Region, config,
		credentials.NewAccessKeyCredential(emulatortest.AccessKeyID, emulatortest.AccessKeySecret))
	if err != nil {
		a.t.Fatal(err)
	}
	client.Domain = "emulator.test"
	return client
}

func (a *account) makeTagged() string {
	a.t.Helper()
	create := vpcapi.CreateCreateRouteTableRequest()
	create.VpcId = testVPC
	create.Tag = &[]vpcapi.CreateRouteTableTag{{Key: "pods", Value: "yes"}}
	made, err := a.vpcAPI().CreateRouteTable(create)
	if err != nil {
		a.t.Fatal(err)
	}
	return made.RouteTableId
}

// TestTablesOfAnyStatus: the pages name the status of a table that is ready in two ways. Its entries decide, so that it gets its routes
// with both.
func TestTablesOfAnyStatus(t *testing.T) {
	t.Parallel()
	for _, flipped := range [][]string{nil, {"vpc.table-available"}} {
		t.Run(fmt.Sprint(flipped), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.Change(func(s *emulator.Settings) { s.Flipped = flipped })
				a.put(3)
				table := a.makeTagged()
				c := newCluster(t, a, func(o *Options) { o.Config.TableTag = &alicloud.Tag{Key: "pods", Value: "yes"} })
				nodes, want := nodesOf(3)
				c.set(nodes...)
				c.converge(time.Minute)
				c.wantRoutes(table, want)
			})
		})
	}
}

// TestTaggedTableDeleted: a table that is chosen by its tag is deleted, and another one gets the tag, while nodes join. The
// others keep their routes, and the new table gets them without a restart.
func TestTaggedTableDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(6)
		first, second := a.makeTagged(), a.makeTagged()
		c := newCluster(t, a, func(o *Options) { o.Config.TableTag = &alicloud.Tag{Key: "pods", Value: "yes"} })
		nodes, _ := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		entries, err := a.Client.DescribeRouteEntries(t.Context(), first, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Client.DeleteRouteEntries(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
		remove := vpcapi.CreateDeleteRouteTableRequest()
		remove.RouteTableId = first
		if _, err := a.vpcAPI().DeleteRouteTable(remove); err != nil {
			t.Fatal(err)
		}
		third := a.makeTagged()
		for i := 3; i < 6; i++ {
			c.set(nodeOf(i, uninitialized))
			c.passFor(3 * time.Minute)
		}
		_, want := nodesOf(6)
		c.wantRoutes(second, want)
		c.wantRoutes(third, want)
		if _, no := c.available(); len(no) > 0 {
			t.Errorf("nodes without network: %v", no)
		}
	})
}

// TestVSwitchesOfAStandby: what a standby read at its start says nothing about the day on which it becomes leader.
func TestVSwitchesOfAStandby(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		vSwitches, err := a.Client.DescribeVSwitches(t.Context(), testVPC)
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(t, a, func(o *Options) { o.VSwitches, o.VSwitchesRead = vSwitches, time.Now() })
		time.Sleep(24 * time.Hour)
		before := a.Last()
		c.kickPass()
		if n := a.Count(before, "DescribeVSwitches"); n != 1 {
			t.Errorf("the vSwitches are read %d times, want once", n)
		}
	})
}
