package vpcroute

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// TestWritesAreExplained: the line in the log of each write names the routes, their nodes, the reason, the result and the request ID.
func TestWritesAreExplained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		for i := range 2 {
			config.Instances = append(config.Instances,
				cloud.InstanceConfig{ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: i == 0})
		}
		a := newAccount(t, emulator.Options{Config: config})
		c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck = false })
		var lines []string
		logger := funcr.New(func(_, args string) {
			if strings.Contains(args, "Wrote to the cloud") {
				lines = append(lines, args)
			}
		}, funcr.Options{})
		ctx := klog.NewContext(t.Context(), logger)
		passes := func() {
			for range 10 {
				_, _ = c.pass(ctx) // what counts is what is written
				_ = c.checkAll(ctx)
				time.Sleep(time.Minute)
			}
		}
		mustHave := func(what string, parts ...string) {
			t.Helper()
			for _, line := range lines {
				all := true
				for _, part := range append(parts, `"result"="done"`, `"requestID"="`) {
					all = all && strings.Contains(line, part)
				}
				if all {
					return
				}
			}
			t.Errorf("%s: no line with %q:\n%s", what, parts, strings.Join(lines, "\n"))
		}
		c.set(nodeOf(0), nodeOf(1))
		passes()
		mustHave("creation", `"action"="CreateRouteEntries"`, cidrOf(0)+" to i-0 of node node-0", cidrOf(1)+" to i-1 of node node-1",
			`"why"="nodes have these`)
		mustHave("source/destination check", `"action"="ModifyNetworkInterfaceAttribute"`, `"node"="node-0"`, `"instance"="i-0"`,
			`"why"="routed pod traffic`)
		lines = nil
		c.unset(nodeOf(1))
		passes()
		mustHave("removal", `"action"="DeleteRouteEntries"`, cidrOf(1)+" to i-1", `"why"="no node has these`)
	})
}
