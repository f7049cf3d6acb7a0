package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// short is ECS behind a server that refuses long requests without an answer of the API, and addresses other than IPv4.
type short struct {
	API
	limit int
	calls int
}

func (s *short) DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	s.calls++
	if len(strings.Join(query.IDs, ",")) > s.limit {
		return nil, &alicloud.Error{Action: "DescribeInstances", Status: http.StatusRequestHeaderFieldsTooLarge}
	}
	if slices.ContainsFunc(query.PrivateIPs, func(address string) bool { return strings.Contains(address, ":") || address == "10.1.0.99" }) {
		return nil, &alicloud.Error{Action: "DescribeInstances", Code: "InvalidParameter", Status: 400, RequestID: "r"}
	}
	return s.API.DescribeInstances(ctx, query)
}

// TestLongProviderIDStopsNobody: a kubelet may write a provider ID of a megabyte. It is named in no call, its Node stays and says why, and
// all others are read, also by a call that a server turned down as too long for another reason.
func TestLongProviderIDStopsNobody(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"a megabyte": strings.Repeat("a", 1<<20), "just too long": strings.Repeat("a", maxIDLength)} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, emulator.Options{})
			ecs := &short{API: a.Client, limit: 90}
			c := newCluster(t, Options{API: ecs})
			nodes := c.join(a.put(20))
			evil := nodeOf(emulator.Instance{ID: "i-" + id}, func(node *corev1.Node) { node.Name = "evil" })
			c.add(evil)
			for _, node := range nodes {
				if _, err := c.InstanceMetadata(t.Context(), node); err != nil {
					t.Fatalf("%s: an innocent node: %v", name, err)
				}
			}
			if gone, _ := monitor(c, append(nodes, evil), 10*time.Minute); gone != 0 {
				t.Errorf("%s: %d nodes were called gone", name, gone)
			}
			_, err := c.InstanceMetadata(t.Context(), evil)
			if !errors.Is(err, ErrProviderIDMalformed) || len(err.Error()) > 400 {
				t.Errorf("%s: the evil node has the error %.500v", name, err)
			}
			if reasons := c.eventReasons(); !slices.Contains(reasons, reasonProviderIDInvalid) {
				t.Errorf("%s: events %v, want %s", name, reasons, reasonProviderIDInvalid)
			}
		})
	}
}

// TestAddressOfOneNodeKeepsNoOtherFromJoining: an IPv6-only node, and one whose address ECS refuses, join alone or not at all.
func TestAddressOfOneNodeKeepsNoOtherFromJoining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: &short{API: a.Client, limit: 1 << 20}})
		nodes := c.join(a.put(30), withProviderID(""), tainted)
		ipv6 := nodeOf(emulator.Instance{ID: "i-6", PrivateIP: "2408:4000::1"}, withProviderID(""), tainted)
		link := nodeOf(emulator.Instance{ID: "i-link", PrivateIP: "fe80::1%eth0"}, withProviderID(""), tainted)
		refused := nodeOf(emulator.Instance{ID: "i-refused", PrivateIP: "10.1.0.99"}, withProviderID(""), tainted)
		c.add(ipv6, link, refused)
		_, _ = c.InstanceMetadata(t.Context(), refused)
		for _, node := range nodes {
			if _, err := c.InstanceMetadata(t.Context(), node); err != nil {
				t.Errorf("%s: %v", node.Name, err)
			}
		}
		c.eventReasons()
		for _, node := range []*corev1.Node{ipv6, link} {
			if _, err := c.InstanceMetadata(t.Context(), node); !errors.Is(err, errNoAddress) {
				t.Errorf("%s: %v", node.Name, err)
			}
		}
		if reasons := c.eventReasons(); !slices.Equal(reasons, []string{reasonInstanceNotFound, reasonInstanceNotFound}) {
			t.Errorf("events %v, want one for each node without IPv4 address", reasons)
		}
	})
}

// TestNoGuardKeepsANodeForEver: whatever the guard is set to, the Node of a released instance goes.
func TestNoGuardKeepsANodeForEver(t *testing.T) {
	t.Parallel()
	for _, guard := range []GuardOptions{
		{}, {Over: 15 * time.Minute}, {Over: 20 * time.Minute}, {Over: time.Hour}, {Over: 15 * time.Minute, Confirmations: 2},
		{Over: 7 * time.Minute, Confirmations: 1},
	} {
		t.Run(fmt.Sprintf("%d over %s", guard.Confirmations, guard.Over), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client, Guard: guard})
				nodes := c.join(a.put(4))
				for _, node := range nodes[1:] {
					isReady(node)
				}
				monitor(c, nodes, time.Minute)
				for _, node := range nodes { // as the stock address pass does
					_, _ = c.InstanceMetadata(t.Context(), node)
				}
				a.ReleaseInstance("i-0")
				if gone, _ := monitor(c, nodes, 2*max(guard.Over, 2*time.Minute)); gone != 1 {
					t.Errorf("%d nodes were called gone after twice the time, want 1", gone)
				}
			})
		})
	}
}

// TestNodesThatWaitForAFinalizerTakeNoTurn: a Node that is being deleted is not deleted again, and takes no turn of the others.
func TestNodesThatWaitForAFinalizerTakeNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(60))
		monitor(c, nodes, time.Minute)
		for i := range 21 {
			a.ReleaseInstance(fmt.Sprintf("i-%d", i))
		}
		for _, node := range nodes[:20] {
			node.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		if gone, first := monitor(c, nodes, 5*time.Minute); gone != 1 || first > 150*time.Second {
			t.Errorf("%d nodes were called gone, the first after %s; want the one that nobody deletes, after 2 to 2.5 min", gone, first)
		}
	})
}

// TestBatchesStayFullBesideSilentNodes: nodes that have been silent for long are read together when they are due, and take no room in the
// calls of others.
func TestBatchesStayFullBesideSilentNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		all := a.put(450)
		silent, healthy := c.join(all[:150]), c.join(all[150:], isReady)
		for _, node := range healthy {
			_, _ = c.InstanceMetadata(t.Context(), node)
		}
		monitor(c, silent, 20*time.Minute) // the answers about the healthy ones are too old by then
		before := a.Last()
		for _, node := range healthy {
			if _, err := c.InstanceMetadata(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		if n := a.Count(before, "DescribeInstances"); n > 6 {
			t.Errorf("%d calls for 300 healthy nodes beside 150 silent ones, want about 4", n)
		}
	})
}

// TestUnservedNodesSayWhy: a ready node that is none of ours for its provider ID has one event, unless a label says that it is not to be.
func TestUnservedNodesSayWhy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Options{API: newAccount(t, emulator.Options{}).Client})
	for id, want := range map[string]int{"aws:///eu-west-1a/i-1": 1, "cn-beijing.i-1": 1, "alibabacloud:///cn-hangzhou/cn-hangzhou-a/i-1": 1} {
		node := nodeOf(emulator.Instance{ID: "i-1"}, withProviderID(id), isReady)
		node.UID += types.UID(id)
		for range 3 {
			if _, _, err := c.changeOf(t.Context(), node); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if reasons := c.eventReasons(); len(reasons) != want {
			t.Errorf("%s: events %v, want %d", id, reasons, want)
		}
		withLabel("service.alibabacloud.com/exclude-node", "true")(node)
		node.UID += "-labeled"
		if _, _, err := c.changeOf(t.Context(), node); err != nil || len(c.eventReasons()) > 0 {
			t.Errorf("%s with a label: %v", id, err)
		}
	}
}
