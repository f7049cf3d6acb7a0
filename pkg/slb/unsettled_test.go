package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// newFewAttachments makes a fleet with nodes that can be behind few CLBs, and perhaps a Service that names a CLB that is not there: its
// passes fail before they choose backends.
func newFewAttachments(t *testing.T, attachments, nodes int, broken bool) *fleet {
	t.Helper()
	f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments},
		config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments)})
	for i := range nodes {
		f.createFleetNode(nodeName(i))
	}
	if broken {
		svc := testService("broken", 80)
		annotate(svc, annotation.LoadBalancerID, "lb-not-there")
		f.put(svc)
	}
	return f
}

// TestBrokenServiceAndNodesThatJoin: Services have subsets because the quota of attachments is small. A Service of somebody else names a
// CLB that does not exist. Nodes that join later become backends all the same.
func TestBrokenServiceAndNodesThatJoin(t *testing.T) {
	t.Parallel()
	const services, attachments, before, after = 14, 10, 10, 40
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprint("broken ", broken), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFewAttachments(t, attachments, before, broken)
				defer func() { f.stop() }()
				f.putMany("s", services)
				f.rest()
				for i := before; i < after; i++ {
					f.createFleetNode(nodeName(i))
					synctest.Wait()
				}
				f.rest()
				time.Sleep(6 * time.Hour)
				f.rest()
				for i := range services {
					name := fmt.Sprintf("s%03d", i)
					if n := len(f.backendsOf(name)["30080"]); n < after/3 {
						t.Errorf("%s has %d of %d nodes", name, n, after)
					}
				}
			})
		})
	}
}

// TestBrokenServiceAndReplacedNodes: all nodes are replaced, one after the other, by a node that joins before one goes. 6 Services with
// Cluster and 5 with Local fit the quota, but not if each Local one had pods everywhere. A Service of somebody else names a CLB that does
// not exist.
func TestBrokenServiceAndReplacedNodes(t *testing.T) {
	t.Parallel()
	const clusters, locals, attachments, nodes = 6, 5, 10, 8
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprint("broken ", broken), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFewAttachments(t, attachments, nodes, broken)
				defer func() { f.stop() }()
				f.putMany("s", clusters)
				for i := range locals {
					f.putLocalOn(fmt.Sprint("local", i), i%2)
				}
				f.rest()
				least := nodes
				for i := 2; i < nodes; i++ {
					f.createFleetNode(nodeName(nodes + i))
					f.rest()
					if err := f.kube.CoreV1().Nodes().Delete(t.Context(), nodeName(i), metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
					f.rest()
					for k := range clusters {
						least = min(least, len(f.backendsOf(fmt.Sprintf("s%03d", k))["30080"]))
					}
				}
				t.Logf("least %d", least)
				if least < nodes-1 {
					t.Errorf("a Service has had only %d backend servers, there were always %d nodes", least, nodes)
				}
			})
		})
	}
}
