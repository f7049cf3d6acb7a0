package vpcroute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestEveryPermissionMayBeMissing lets one node join and one leave under the published policy, for every action of which
// there is a turn without it: what is said names the action, the route of the node that stays is kept, and with the
// permission back all is as it should be.
func TestEveryPermissionMayBeMissing(t *testing.T) {
	t.Parallel()
	for _, action := range alicloud.ActionsOf(alicloud.FeatureRoutes) {
		t.Run(action.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playMissing(t, action.Name) })
		})
	}
}

func playMissing(t *testing.T, action string) {
	t.Helper()
	config := cloud.DefaultConfig()
	for i := range 4 {
		config.Instances = append(config.Instances, cloud.InstanceConfig{
			ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: i == 2,
		})
	}
	a := newAccount(t, emulator.Options{Config: config})
	permit := func(actions []string) {
		if !a.Permit("emulator", actions...) {
			t.Fatal("the emulator does not know the access key")
		}
	}
	permit(alicloud.FeatureRoutes.Policy())
	a.make("", map[string]string{cidrOf(9): "i-3"}) // in the way of a node, and not of a machine that is gone: DescribeInstances shows it
	c := newCluster(t, a, func(o *Options) {
		if action == "DescribeRouteTableList" {
			o.Config.VSwitchIDs = []string{"vsw-a"}
		}
	})
	c.set(nodeOf(0), nodeOf(1), nodeOf(9))
	c.converge(time.Minute)
	c.restart()

	permit(alicloud.FeatureRoutes.Policy(action))
	c.unset(nodeOf(0))
	c.set(nodeOf(2))
	before := a.Last()
	said := c.work(t)
	refused := slices.ContainsFunc(a.Calls(before), func(call emulator.Call) bool { return call.Action == action })
	if !refused {
		t.Fatalf("%s was not called; said: %s", action, said)
	}
	if !strings.Contains(said, action) {
		t.Errorf("said: %s\nwant something that names %s", said, action)
	}
	if kept := a.Routes(testTable)[cidrOf(1)]; kept != "i-1" {
		t.Errorf("the route of the node that stays leads to %q", kept)
	}

	permit(alicloud.FeatureRoutes.Policy())
	c.work(t)
	if diff := cmp.Diff(map[string]string{cidrOf(1): "i-1", cidrOf(2): "i-2", cidrOf(9): "i-3"}, a.Routes(testTable)); diff != "" {
		t.Errorf("routes with the permission back (-want +got):\n%s", diff)
	}
	before = a.Last()
	c.work(t)
	if n := a.Count(before, writes...); n != 0 {
		t.Errorf("%d writes with nothing left to do", n)
	}
}

// work does what the controller does for some time, and returns what it says.
func (c *cluster) work(t *testing.T) string {
	t.Helper()
	var said []string
	logger := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
	ctx := klog.NewContext(t.Context(), logger)
	note := func(err error) {
		if err != nil {
			said = append(said, err.Error())
		}
	}
	for range 20 {
		_, err := c.pass(ctx)
		note(err)
		c.checks.want(c.instances())
		note(c.checkAll(ctx))
		time.Sleep(time.Minute)
	}
	for len(c.events.Events) > 0 {
		said = append(said, <-c.events.Events)
	}
	return strings.Join(said, "\n")
}
