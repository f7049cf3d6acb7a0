//go:build linux && real

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const systemTable = "vtb-emulator"

// watch looks all the time whether Nodes and routes are there that must be.
type watch struct {
	mu     sync.Mutex
	nodes  map[string]types.UID // by name; guarded by mu
	routes map[string]string    // instances by CIDR; guarded by mu
	// lost says what was missing at any time, and during what; guarded by mu
	lostNodes, lostRoutes map[string]string
	during                string // guarded by mu
}

// newWatch watches until the test ends.
func newWatch(t *testing.T) *watch {
	t.Helper()
	w := &watch{nodes: map[string]types.UID{}, routes: map[string]string{}, lostNodes: map[string]string{}, lostRoutes: map[string]string{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			w.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(look):
			}
		}
	})
	t.Cleanup(func() { stop(); group.Wait() })
	return w
}

// expect takes the Nodes and their routes as they are now for those that must stay. All others may go.
func (w *watch) expect(t *testing.T, names ...string) {
	t.Helper()
	nodes, routes := map[string]types.UID{}, map[string]string{}
	for _, name := range names {
		n := node(t, name)
		nodes[name], routes[n.Spec.PodCIDR] = n.UID, instanceOf(n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes, w.routes = nodes, routes
}

// expectRoutesOnly lets the Nodes go, and not their routes.
func (w *watch) expectRoutesOnly() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = map[string]types.UID{}
}

func instanceOf(n *corev1.Node) string {
	_, id, _ := strings.Cut(n.Spec.ProviderID, cluster.Region+".")
	return id
}

// look compares once. What cannot be read says nothing.
func (w *watch) look(ctx context.Context) {
	nodes, errNodes := sandbox.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	routes, errRoutes := routesOf(ctx, systemTable)
	w.mu.Lock()
	defer w.mu.Unlock()
	have := map[string]types.UID{}
	if errNodes == nil {
		for i := range nodes.Items {
			have[nodes.Items[i].Name] = nodes.Items[i].UID
		}
		for name, uid := range w.nodes {
			if have[name] != uid {
				w.lostNodes[name] = w.during
			}
		}
	}
	if errRoutes == nil {
		for cidr, instance := range w.routes {
			if routes[cidr] != instance {
				w.lostRoutes[cidr] = w.during
			}
		}
	}
}

// now says during what things go missing from now on, and returns how many have so far.
func (w *watch) now(during string) (nodes, routes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.during = during
	return len(w.lostNodes), len(w.lostRoutes)
}

// report is what was lost at any time.
func (w *watch) report(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.lostNodes)) {
		t.Errorf("Node %s was lost during: %s", name, w.lostNodes[name])
	}
	for _, cidr := range slices.Sorted(maps.Keys(w.lostRoutes)) {
		t.Errorf("the route of %s was lost during: %s", cidr, w.lostRoutes[cidr])
	}
}

// routesOf are the instances that custom entries of a table lead to, by CIDR, as the cloud itself knows them.
func routesOf(ctx context.Context, table string) (map[string]string, error) {
	text, err := ask(ctx, http.MethodGet, "/_emulator/state", "")
	if err != nil {
		return nil, err
	}
	var state struct {
		RouteTables []struct {
			RouteTableID string `json:"RouteTableId"`
			RouteEntries []struct {
				Type, Status, DestinationCidrBlock string
				NextHops                           struct {
					NextHop []struct {
						NextHopID string `json:"NextHopId"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, fmt.Errorf("decode the state of the cloud: %w", err)
	}
	routes := map[string]string{}
	for _, t := range state.RouteTables {
		for _, e := range t.RouteEntries {
			if t.RouteTableID == table && e.Type == "Custom" && e.Status == "Available" && len(e.NextHops.NextHop) == 1 {
				routes[e.DestinationCidrBlock] = e.NextHops.NextHop[0].NextHopID
			}
		}
	}
	return routes, nil
}
