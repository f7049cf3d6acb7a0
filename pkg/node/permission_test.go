package node

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestEveryPermissionMayBeMissing has a node join and the instance of another released under the published policy, for
// every action of which there is a turn without it: while ECS may not be read no Node is called gone and both the answers
// and the events name the action; with the permission back exactly the released one is.
func TestEveryPermissionMayBeMissing(t *testing.T) {
	t.Parallel()
	for _, action := range alicloud.ActionsOf(alicloud.FeatureNodes) {
		t.Run(action.Name, func(t *testing.T) {
			t.Parallel()
			for name, restarted := range map[string]bool{"taken away": false, "not there at the start": true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { playMissing(t, action, restarted) })
				})
			}
		})
	}
}

func playMissing(t *testing.T, action alicloud.Action, restarted bool) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	permit := func(actions []string) {
		if !a.Permit("emulator", actions...) {
			t.Fatal("the emulator does not know the access key")
		}
	}
	permit(alicloud.FeatureNodes.Policy())
	instances := a.put(5)
	silent, released := nodeOf(instances[0]), nodeOf(instances[1])
	nameless := nodeOf(instances[2], withoutProviderID)
	joining := nodeOf(instances[3], tainted, createdSoon)
	nodes := []*corev1.Node{silent, released, nameless, nodeOf(instances[4], isReady)}
	c := newCluster(t, Options{API: a.Client})
	c.add(nodes...)
	if gone, _ := monitor(c, nodes, time.Minute); gone != 0 {
		t.Fatalf("%d nodes called gone whose instances exist", gone)
	}

	if restarted {
		c = newCluster(t, Options{API: a.Client})
		c.add(nodes...)
	}
	permit(alicloud.FeatureNodes.Policy(action.Name))
	a.ReleaseInstance(released.Name[len("node-"):])
	c.add(joining)
	checkMissing(t, c, action, append(nodes, joining))

	permit(alicloud.FeatureNodes.Policy())
	time.Sleep(maxMissAge)
	if _, err := c.InstanceMetadata(t.Context(), joining); err != nil {
		t.Errorf("with the permission back: %v", err)
	}
	gone := 0
	for _, node := range append(nodes, joining) {
		if n, _ := monitor(c, []*corev1.Node{node}, 10*time.Minute); n != 0 {
			gone++
			if node != released {
				t.Errorf("with the permission back %s is called gone", node.Name)
			}
		}
	}
	if gone != 1 {
		t.Errorf("with the permission back %d nodes are called gone, want the one whose instance is released", gone)
	}
}

// checkMissing watches the nodes for ten minutes in which an action is missing. Only ECS matters to them.
func checkMissing(t *testing.T, c *cluster, action alicloud.Action, all []*corev1.Node) {
	t.Helper()
	gone, _ := monitor(c, all, 10*time.Minute)
	_, joinErr := c.InstanceMetadata(t.Context(), all[len(all)-1])
	if action.Product != "ecs" {
		if gone != 1 || joinErr != nil {
			t.Errorf("%d nodes called gone and the one that joins answered by %v, want 1 and no error", gone, joinErr)
		}
		return
	}
	if gone != 0 {
		t.Errorf("%d nodes called gone", gone)
	}
	events := c.emitted()
	for _, node := range all {
		if nodes.Ready(node) {
			continue
		}
		if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
			t.Errorf("%s: exists = %t, %v, want true while it is not known", node.Name, exists, err)
		}
		if !slices.ContainsFunc(events, func(event string) bool { return strings.Contains(event, action.RAM()) }) {
			t.Errorf("events = %q, want some that name %s", events, action.RAM())
		}
	}
	if joinErr == nil || !strings.Contains(joinErr.Error(), action.RAM()) {
		t.Errorf("the node that joins: %v, want an error that names %s", joinErr, action.RAM())
	}
}
