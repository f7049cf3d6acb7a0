//go:build linux && real

package real

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	twoZones   = "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"
	threeZones = twoZones + ",cn-hangzhou-c:" + thirdVSwitch
)

// webNLB is [web] behind an NLB in three zones.
var webNLB = strings.NewReplacer(
	"alibaba-cloud-loadbalancer-address-type: internet", "alibaba-cloud-loadbalancer-zone-maps: "+threeZones+
		"\n    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-flag: \"on\"",
	"  type: LoadBalancer\n", "  type: LoadBalancer\n  loadBalancerClass: alibabacloud.com/nlb\n",
).Replace(web)

// TestNLBUnderLoad sends a constant stream of requests from the internet to every zone of an NLB while things happen. No request may
// fail, but those to a zone that is taken away.
func TestNLBUnderLoad(t *testing.T) {
	manifestOfUsers(t)
	apply(t, webNLB)
	kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=90s")
	name := nameOf(t, "web")
	outside := at(t, internetClient)
	zones := zonesOf(t, name, 3)
	for _, address := range zones {
		answers(t, outside, "http://"+address)
	}
	serversAre(t, name, 1, 2)
	underLoad := func(of []string, step func(), check func(*stream)) {
		t.Helper()
		var streams []*stream
		for _, address := range of {
			streams = append(streams, outside.stream(t, "http://"+address))
		}
		step()
		for _, s := range streams {
			check(s)
		}
	}

	t.Run("rolling update", func(*testing.T) {
		underLoad(zones, func() { respread(t) }, (*stream).wantNone)
	})
	t.Run("the manager is killed and another one takes over", func(t *testing.T) {
		underLoad(zones, func() {
			pods, err := podsOf(t.Context(), metav1.NamespaceSystem, "app=cloud-controller-manager")
			if err != nil {
				t.Fatal(err)
			}
			for _, pod := range pods {
				kubectl(t, "", "-n", "kube-system", "delete", "pod", pod.Name, "--grace-period=0", "--force")
			}
			apply(t, strings.Replace(strings.SplitN(webNLB, "---", 2)[0], "name: web\n  annotations", "name: later\n  annotations", 1))
			answers(t, outside, "http://"+zonesOf(t, nameOf(t, "later"), 3)[0])
		}, (*stream).wantNone)
	})
	t.Run("drain", func(t *testing.T) {
		underLoad(zones, func() {
			kubectl(t, "", "drain", nodeName(2), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
		}, (*stream).wantNone)
		kubectl(t, "", "uncordon", nodeName(2))
		respread(t)
	})
	t.Run("node released, and a new one", func(t *testing.T) {
		nodeReleased(t, outside, []string{"http://" + zones[0], "http://" + zones[2]}, func(instances ...int) {
			serversAre(t, name, instances...)
		})
	})
	t.Run("a zone is taken away and comes back", func(t *testing.T) {
		var left []string
		underLoad(zones[:2], func() {
			kubectl(t, "", "annotate", "service", "web", "--overwrite", "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps="+twoZones)
			left = zonesOf(t, name, 2)
		}, (*stream).wantNone)
		if want := slices.Sorted(slices.Values(zones[:2])); !slices.Equal(slices.Sorted(slices.Values(left)), want) {
			t.Errorf("addresses %v after a zone was taken away, want %v", left, want)
		}
		if _, err := outside.get(t.Context(), "http://"+zones[2]); err == nil {
			t.Error("the zone that was taken away answers")
		}
		kubectl(t, "", "annotate", "service", "web", "--overwrite", "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps="+threeZones)
		for _, address := range zonesOf(t, name, 3) {
			answers(t, outside, "http://"+address)
		}
	})
	t.Run("addresses of clients", func(t *testing.T) {
		kubectl(t, "", "patch", "service", "web", "--patch", `{"spec":{"externalTrafficPolicy":"Local"}}`)
		address := zonesOf(t, name, 3)[0]
		until(t, "pods see the address of the client", func(ctx context.Context) string {
			got, err := outside.get(ctx, "http://"+address)
			if err != nil || !strings.HasPrefix(got.Source, internetAddress+":") {
				return fmt.Sprintf("%+v, %v", got, err)
			}
			return ""
		})
	})
}

// containerNLB is [container] behind an NLB in two zones.
var containerNLB = strings.NewReplacer(
	"name: container\n  annotations: {",
	"name: container\n  annotations: {service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps: \""+twoZones+"\", ",
	"  type: LoadBalancer\n", "  type: LoadBalancer\n  loadBalancerClass: alibabacloud.com/nlb\n",
).Replace(container)

// TestNLBOfPods puts a pod behind an NLB: its network interface is the backend server, as its node is no instance.
func TestNLBOfPods(t *testing.T) {
	manifestOfUsers(t)
	apply(t, containerNLB)
	name := nameOf(t, "container")
	for _, address := range zonesOf(t, name, 2) {
		if r := answers(t, at(t, vpcClient), "http://"+address); r.Node != "virtual-1" {
			t.Errorf("%s on node %q answers", r.Name, r.Node)
		}
	}
	_, have, err := stateOf(t.Context(), name)
	if err != nil || len(have) != 1 || !strings.HasPrefix(have[0], "eni-eci-") {
		t.Errorf("backend servers are %v, %v, want the network interface", have, err)
	}
}

// nameOf waits for the name of a Service's NLB.
func nameOf(t *testing.T, service string) string {
	t.Helper()
	var shown corev1.LoadBalancerIngress
	until(t, "Service "+service+" has a name", func(ctx context.Context) string {
		s, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, service, metav1.GetOptions{})
		if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("no address yet, %v", err)
		}
		shown = s.Status.LoadBalancer.Ingress[0]
		return ""
	})
	if shown.Hostname == "" || shown.IP != "" {
		t.Fatalf("the Service shows %+v, want a name", shown)
	}
	return shown.Hostname
}

// balancerState is what the emulator's state shows of the NLB with a name.
type balancerState struct {
	DNSName      string
	Addresses    []string
	ZoneMappings []zoneState
	Listeners    []struct {
		ServerGroupID string `json:"ServerGroupId"`
	} `json:"listeners"`
}

type zoneState struct {
	ZoneID                string `json:"ZoneId"`
	LoadBalancerAddresses []struct{ PublicIPv4Address, PrivateIPv4Address string }
}

// stateOf returns that state, and the backend servers of all listeners.
func stateOf(ctx context.Context, name string) (lb balancerState, servers []string, err error) {
	var state struct {
		NetworkLoadBalancers []balancerState `json:"networkLoadBalancers"`
		ServerGroups         []struct {
			ServerGroupID string `json:"ServerGroupId"`
			Servers       []struct {
				ServerID string `json:"ServerId"`
			} `json:"servers"`
		} `json:"serverGroups"`
	}
	text, err := ask(ctx, http.MethodGet, "/_emulator/state", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		return lb, nil, err
	}
	at := slices.IndexFunc(state.NetworkLoadBalancers, func(b balancerState) bool { return b.DNSName == name })
	if at < 0 {
		return lb, nil, fmt.Errorf("no NLB has the name %s", name)
	}
	lb = state.NetworkLoadBalancers[at]
	for _, listener := range lb.Listeners {
		for _, group := range state.ServerGroups {
			for _, server := range group.Servers {
				if group.ServerGroupID == listener.ServerGroupID {
					servers = append(servers, server.ServerID)
				}
			}
		}
	}
	return lb, servers, nil
}

// zonesOf waits until the name stands for so many addresses, and returns them by the order of their zones.
func zonesOf(t *testing.T, name string, count int) []string {
	t.Helper()
	var addresses []string
	until(t, fmt.Sprintf("the name stands for %d addresses", count), func(ctx context.Context) string {
		lb, _, err := stateOf(ctx, name)
		if err != nil || len(lb.Addresses) != count {
			return fmt.Sprintf("addresses %v, %v", lb.Addresses, err)
		}
		slices.SortFunc(lb.ZoneMappings, func(a, b zoneState) int { return strings.Compare(a.ZoneID, b.ZoneID) })
		addresses = nil
		for _, zone := range lb.ZoneMappings {
			for _, address := range zone.LoadBalancerAddresses {
				addresses = append(addresses, cmp.Or(address.PublicIPv4Address, address.PrivateIPv4Address))
			}
		}
		return ""
	})
	return addresses
}

// serversAre waits until exactly these instances are the backend servers of an NLB.
func serversAre(t *testing.T, name string, instances ...int) {
	t.Helper()
	var want []string
	for _, i := range instances {
		want = append(want, instanceID(i))
	}
	until(t, fmt.Sprintf("backend servers are %v", instances), func(ctx context.Context) string {
		_, have, err := stateOf(ctx, name)
		if slices.Sort(have); err != nil || !slices.Equal(have, want) {
			return fmt.Sprintf("they are %v, %v", have, err)
		}
		return ""
	})
}
