//go:build linux && real

package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// secondPodCIDR is the range of the second cluster's pods. It is inside that of the first cluster, which both managers have as cluster
// CIDR.
const secondPodCIDR = "172.17.128.0/17"

// sharedPort is that of the listener which the owner of the shared load balancer has made; each cluster has one of its own beside.
const sharedPort = 80

// secondCluster is a second cluster in the cloud of the first one: control plane, a machine, and this project's manager from its manifest.
type secondCluster struct {
	kubeconfig, instance string
}

// TestSecondCluster lets two clusters share a load balancer that is neither's: each has a listener of its own on it, and backend servers in
// a vServer group of the load balancer's owner. When one cluster leaves, requests to the other go on. Both have the literal cluster ID of
// the official CCM and one cluster CIDR, so that each finds the other's routes among those that it might take for its own: it removes none.
func TestSecondCluster(t *testing.T) {
	manifestOfUsers(t)
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	second := joinSecond(t)
	second.apply(t, strings.Replace(pods, "replicas: 2", "replicas: 1", 1))
	lb, group := sharedLoadBalancer(t)
	outside := at(t, internetClient)
	url := func(port int) string { return fmt.Sprintf("http://%s:%d", lb.Address, port) }
	first := sharingServices(lb.ID, group, 81)
	kubectl(t, first, "apply", "-f", "-")
	second.kubectl(t, sharingServices(lb.ID, group, 82), "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, first, "delete", "--ignore-not-found", "--timeout=90s", "-f", "-") })
	instances := []string{instanceID(1), instanceID(2)}
	routes := bothRouted(t, second)

	for port, want := range map[int]string{81: "node-", 82: "second-"} {
		if r := answers(t, outside, url(port)); !strings.HasPrefix(r.Node, want) {
			t.Errorf("at port %d, %s on %s answers", port, r.Name, r.Node)
		}
	}
	membersAre(t, group, append([]string{second.instance}, instances...))
	nodesAnswer(t, outside, url(sharedPort), "node-", "second-")

	t.Run("the second cluster leaves and comes back", func(t *testing.T) {
		own, shared := outside.stream(t, url(81)), outside.stream(t, url(sharedPort))
		second.kubectl(t, sharingServices(lb.ID, group, 82), "delete", "--timeout=90s", "-f", "-")
		membersAre(t, group, instances)
		gone(t, outside, url(82))
		second.kubectl(t, sharingServices(lb.ID, group, 82), "apply", "-f", "-")
		membersAre(t, group, append([]string{second.instance}, instances...))
		answers(t, outside, url(82))
		own.wantNone()
		shared.wantNone()
	})
	t.Run("the first cluster leaves", func(t *testing.T) {
		own, shared := outside.stream(t, url(82)), outside.stream(t, url(sharedPort))
		kubectl(t, first, "delete", "--timeout=90s", "-f", "-")
		membersAre(t, group, []string{second.instance})
		gone(t, outside, url(81))
		own.wantNone()
		shared.wantNone()
	})
	t.Run("routes of both clusters stay", func(t *testing.T) {
		goOn(time.Until(routes.restarted.Add(startGrace + spell)))
		for _, requests := range routes.requests {
			requests.wantNone()
		}
		routes.watch.report(t)
	})
	t.Run("what is its owner's stays", func(t *testing.T) {
		second.kubectl(t, sharingServices(lb.ID, group, 82), "delete", "--timeout=90s", "-f", "-")
		membersAre(t, group, nil)
		client := cloudClient(t)
		listeners, err := client.DescribeListeners(t.Context(), lb.ID)
		if err != nil || len(listeners[lb.ID]) != 1 || listeners[lb.ID][0].Port != sharedPort {
			t.Errorf("listeners %+v, %v, want that of port %d", listeners, err, sharedPort)
		}
		groups, err := client.DescribeVServerGroups(t.Context(), lb.ID)
		if err != nil || len(groups) != 1 || groups[0].ID != group {
			t.Errorf("groups %+v, %v, want %s", groups, err, group)
		}
	})
}

// joinSecond starts the second cluster, which ends with the test, and installs the manager as the chart's manifest has it.
func joinSecond(t *testing.T) secondCluster {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "second")
	process := up(t, dir, "--cloud", sandbox.url, "--pod-cidr", secondPodCIDR)
	g := secondCluster{kubeconfig: filepath.Join(dir, "kubeconfig")}
	t.Cleanup(func() {
		if err := process.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := process.Wait(); err != nil {
			t.Errorf("the second cluster after SIGINT: %v", err)
		}
		if left := mustList(t, dir); len(left) > 0 {
			t.Errorf("the second cluster has left behind:\n%s", strings.Join(left, "\n"))
		}
	})
	config, err := os.ReadFile(filepath.Join(dir, "cloud-config.conf"))
	if err != nil {
		t.Fatal(err)
	}
	literal := strings.Replace(string(config), `"Global": {`, `"Global": {"clusterID": "clusterid",`, 1)
	g.kubectl(t, "", "-n", "kube-system", "create", "configmap", "cloud-config", "--from-literal=cloud-config.conf="+literal)
	manifest, err := deploy.Files.ReadFile("ccm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g.kubectl(t, strings.Replace(replaceImage(string(manifest), cluster.ManagerImage), cluster.PodCIDR, podCIDR, 1), "apply", "-f", "-")
	until(t, "the second cluster's node is initialized", func(context.Context) string {
		id := g.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}")
		_, instance, ok := strings.Cut(id, cluster.Region+".")
		if g.instance = instance; !ok {
			return fmt.Sprintf("its provider ID is %q", id)
		}
		return ""
	})
	return g
}

// bothRoutes are requests over the routes of both clusters, and the routes.
type bothRoutes struct {
	requests  []*stream
	watch     *watch
	restarted time.Time
}

// startGrace is how long a manager leaves routes alone whose node it has never seen.
const startGrace = time.Minute

// bothRouted sends requests from a pod of the first cluster to its other one, and to one of the second cluster, and starts both managers
// anew, which then have seen nothing of what they find in the route table.
func bothRouted(t *testing.T, second secondCluster) bothRoutes {
	t.Helper()
	pods := podsByNode(t)
	from, both := inPod(t, pods[nodeName(1)]), bothRoutes{watch: newWatch(t)}
	second.kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s") // without it, its pod may have no address yet
	addresses := strings.Fields(second.kubectl(t, "", "get", "pods", "-l", "app=net", "-o", "jsonpath={.items[*].status.podIP}"))
	if len(addresses) != 1 {
		t.Fatalf("the second cluster's pods have the addresses %v, want one", addresses)
	}
	for _, ip := range append(addresses, pods[nodeName(2)].Status.PodIP) {
		answers(t, from, "http://"+ip+":8080")
		both.requests = append(both.requests, from.stream(t, "http://"+ip+":8080"))
	}
	both.watch.expect(t, nodeName(1), nodeName(2))
	both.watch.alsoRoute(second.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].spec.podCIDR}"), second.instance)
	kubectl(t, "", "-n", "kube-system", "rollout", "restart", "daemonset/cloud-controller-manager")
	second.kubectl(t, "", "-n", "kube-system", "rollout", "restart", "deployment/cloud-controller-manager")
	both.restarted = time.Now()
	return both
}

func (g secondCluster) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return kubectlAt(t, g.kubeconfig, stdin, args...)
}

// apply applies a manifest; it goes with the cluster.
func (g secondCluster) apply(t *testing.T, manifest string) {
	t.Helper()
	g.kubectl(t, manifest, "apply", "-f", "-")
}

// sharedLoadBalancer makes an internet load balancer with a listener and an empty vServer group, as its owner does by hand. Its tag lets
// clusters with the literal cluster ID use it, as the manifest's policy of reuse demands.
func sharedLoadBalancer(t *testing.T) (lb alicloud.LoadBalancer, group string) {
	t.Helper()
	client := cloudClient(t)
	lb, err := client.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{Name: "shared", AddressType: alicloud.AddressInternet}, "shared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.DeleteLoadBalancer(context.WithoutCancel(t.Context()), lb.ID); err != nil {
			t.Error(err)
		}
	})
	if err := client.TagLoadBalancer(t.Context(), lb.ID, []alicloud.Tag{{Key: mark.TagAllow, Value: "clusterid"}}); err != nil {
		t.Fatal(err)
	}
	if group, err = client.CreateVServerGroup(t.Context(), lb.ID, "shared", nil); err != nil {
		t.Fatal(err)
	}
	key := alicloud.ListenerKey{Port: sharedPort, Protocol: alicloud.ProtocolTCP}
	if err := client.CreateListener(t.Context(), lb.ID, alicloud.Listener{ListenerKey: key, VServerGroupID: group}); err != nil {
		t.Fatal(err)
	}
	if err := client.StartListener(t.Context(), lb.ID, key); err != nil {
		t.Fatal(err)
	}
	return lb, group
}

// sharingServices are two Services, whose names no other cluster with the same cluster ID has: one with a listener of its own on a shared
// load balancer, one whose backend servers join a shared group.
func sharingServices(lb, group string, port int) string {
	id := annotations + "id: " + lb
	return serviceOf(fmt.Sprintf("own-%d", port), fmt.Sprintf("{port: %d, targetPort: 8080}", port),
		id+"\n    "+annotations+`force-override-listeners: "true"`, "") +
		"---" + serviceOf(fmt.Sprintf("sharing-%d", port), fmt.Sprintf("{port: %d, targetPort: 8080}", sharedPort),
		id+"\n    "+annotations+fmt.Sprintf("vgroup-port: %q", fmt.Sprintf("%s:%d", group, sharedPort))+"\n    "+annotations+`weight: "50"`, "")
}

// membersAre waits until exactly these instances are backend servers of a group, and looks whether the two clusters' weights are right:
// each has half.
func membersAre(t *testing.T, group string, instances []string) {
	t.Helper()
	slices.Sort(instances)
	client := cloudClient(t)
	until(t, fmt.Sprintf("the group's backend servers are %v", instances), func(ctx context.Context) string {
		g, err := client.DescribeVServerGroup(ctx, group)
		if err != nil {
			return err.Error()
		}
		var have []string
		for _, b := range g.Backends {
			have = append(have, b.ServerID)
			if want := map[bool]int{true: 25, false: 50}[strings.HasPrefix(b.ServerID, "i-sandbox")]; b.Weight != want {
				return fmt.Sprintf("%s has the weight %d, want %d", b.ServerID, b.Weight, want)
			}
		}
		if slices.Sort(have); !slices.Equal(have, instances) {
			return fmt.Sprintf("they are %v", have)
		}
		return ""
	})
}

// nodesAnswer waits until nodes with each of these prefixes have answered.
func nodesAnswer(t *testing.T, from place, url string, prefixes ...string) {
	t.Helper()
	missing := slices.Clone(prefixes)
	until(t, fmt.Sprintf("nodes of %v answer at %s", prefixes, url), func(ctx context.Context) string {
		r, err := from.get(ctx, url)
		if err != nil {
			return err.Error()
		}
		missing = slices.DeleteFunc(missing, func(prefix string) bool { return strings.HasPrefix(r.Node, prefix) })
		if len(missing) > 0 {
			return fmt.Sprintf("nobody of %v has", missing)
		}
		return ""
	})
}

// gone waits until nobody answers any more.
func gone(t *testing.T, from place, url string) {
	t.Helper()
	until(t, url+" answers no more", func(ctx context.Context) string {
		if r, err := from.get(ctx, url); err == nil {
			return r.Name + " answers"
		}
		return ""
	})
}
