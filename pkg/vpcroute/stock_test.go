package vpcroute

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	routecontroller "k8s.io/cloud-provider/controllers/route"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	netutils "k8s.io/utils/net"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// startStock runs the stock route controller over the adapter.
func (s *server) startStock(change ...func(*Options)) {
	s.t.Helper()
	s.start(func(factory informers.SharedInformerFactory) func(context.Context) {
		opts := s.options(factory)
		for _, f := range change {
			f(&opts)
		}
		nodes := factory.Core().V1().Nodes()
		clusterCIDRs, err := netutils.ParseCIDRs([]string{"10.244.0.0/16"})
		if err != nil {
			s.t.Fatal(err)
		}
		controller, err := routecontroller.New(NewRoutes(NewWriter(opts)), s.client, nodes, "kubernetes", clusterCIDRs)
		if err != nil {
			s.t.Fatal(err)
		}
		return func(ctx context.Context) {
			controller.Run(ctx, 300*time.Millisecond, controllersmetrics.NewControllerManagerMetrics("test"))
		}
	})
}

// TestStockController lets the stock route controller drive the adapter: with two hundred calls at once, CIDRs that move
// while their old entries are deleted, nodes that go, and entries that are none of ours.
func TestStockController(t *testing.T) {
	t.Parallel()
	const count = 200
	s := newServer(t, emulator.Options{Settle: 100 * time.Millisecond}, count+3)
	s.account.make("by hand", map[string]string{"10.244.250.0/28": fmt.Sprintf("i-%d", count+2)})
	nodes, want := nodesOf(count)
	want["10.244.250.0/28"] = fmt.Sprintf("i-%d", count+2)
	s.create(nodes...)
	s.startStock()
	s.eventuallyRoutes(want)
	if n := s.account.Count(0, "CreateRouteEntries"); n > 40 {
		t.Errorf("%d routes took %d batches", count, n)
	}

	s.update("node-1", withCIDR(cidrOf(2)))
	s.update("node-2", withCIDR(cidrOf(1)))
	want[cidrOf(1)], want[cidrOf(2)] = "i-2", "i-1"
	if err := s.client.CoreV1().Nodes().Delete(t.Context(), "node-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	delete(want, cidrOf(3))
	s.eventuallyRoutes(want)

	before := s.account.Last()
	s.eventually("three more passes", testPatience, func(context.Context) bool {
		return s.account.Count(before, "DescribeRouteEntryList") >= 6
	})
	if n := s.account.Count(before, writes...); n != 0 {
		t.Errorf("passes over settled routes made %d writes", n)
	}
	if diff := cmp.Diff(want, s.account.Routes(testTable)); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// TestStockControllerWithoutSettings: in a program that starts the stock route controller, only that one knows the cluster CIDR.
func TestStockControllerWithoutSettings(t *testing.T) {
	t.Parallel()
	s := newServer(t, emulator.Options{}, 6)
	foreign := map[string]string{"10.244.250.0/28": "i-5", "192.168.0.0/24": "i-5", "0.0.0.0/0": "i-5"}
	s.account.make("by hand", foreign)
	nodes, want := nodesOf(5)
	maps.Copy(want, foreign)
	s.create(nodes...)
	s.startStock(func(o *Options) { o.Config.ClusterCIDRs = nil })
	s.eventuallyRoutes(want)
	if err := s.client.CoreV1().Nodes().Delete(t.Context(), "node-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	delete(want, cidrOf(3))
	s.eventuallyRoutes(want)
}

// TestRoutesConcurrently makes two hundred calls at once, as the stock controller does at most.
func TestRoutesConcurrently(t *testing.T) {
	t.Parallel()
	// In a bubble, so that all have called before the first batch ends, however busy the machine is.
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{Latency: 5 * time.Millisecond})
		a.put(200)
		c := newCluster(t, a)
		nodes, want := nodesOf(200)
		c.set(nodes...)
		routes := NewRoutes(c.writer)
		var calls sync.WaitGroup
		for _, node := range nodes {
			calls.Go(func() {
				if err := routes.CreateRoute(t.Context(), "", string(node.UID), routeTo(node)); err != nil {
					t.Errorf("create the route of %s: %v", node.Name, err)
				}
			})
		}
		calls.Wait()
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
		if n := a.Count(0, "CreateRouteEntries"); n > 12 {
			t.Errorf("200 concurrent calls made %d batches", n)
		}
		listed, err := routes.ListRoutes(t.Context(), "")
		if err != nil || len(listed) != 200 {
			t.Fatalf("%d routes are listed (%v), want 200", len(listed), err)
		}
		before := a.Last()
		c.unset(nodes[:20]...)
		for range 3 { // not at once: more may go
			if listed, err = routes.ListRoutes(t.Context(), ""); err != nil || len(listed) != 180 {
				t.Fatalf("%d routes are listed (%v), want 180", len(listed), err)
			}
			time.Sleep(2 * waits.RouteWithoutNode)
		}
		for _, node := range nodes[:20] {
			delete(want, node.Spec.PodCIDR)
		}
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes after 20 nodes went (-want +got):\n%s", diff)
		}
		if n := a.Count(before, "DeleteRouteEntries"); n != 1 {
			t.Errorf("20 routes were deleted in %d batches, want one", n)
		}
	})
}

// TestCreateRouteSaysWhy: the stock route controller reports what the cloud says, at once, about the route that the cloud refuses, and no
// other.
func TestCreateRouteSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.Quotas.RouteEntriesPerTable = 2
		a := newAccount(t, emulator.Options{Config: config})
		a.put(3)
		c := newCluster(t, a)
		nodes, _ := nodesOf(3)
		c.set(nodes...)
		routes := NewRoutes(c.writer)
		start := time.Now()
		var refused []string
		for _, node := range nodes {
			switch err := routes.CreateRoute(t.Context(), "", "", routeTo(node)); {
			case alicloud.IsQuota(err):
				refused = append(refused, node.Name)
			case err != nil:
				t.Errorf("create the route of %s: %v", node.Name, err)
			}
		}
		if took := time.Since(start); len(refused) != 1 || took > 5*time.Second {
			t.Errorf("refused for want of quota: %v, after %s, want one node at once", refused, took)
		}
		if n := a.Count(0, "CreateRouteEntries"); n > 2 {
			t.Errorf("%d calls to create three routes", n)
		}
	})
}
