package vpcroute

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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func withAddresses(addresses ...string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Status.Addresses = nil
		for _, address := range addresses {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
	}
}

func ready(node *corev1.Node) {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
}

// live runs the work of both queues of the controller, each at its time, for so long.
func (c *cluster) live(during time.Duration) {
	c.t.Helper()
	pass := time.Now()
	for end := time.Now().Add(during); time.Now().Before(end); {
		now := time.Now()
		if !pass.After(now) {
			next, err := c.pass(c.t.Context())
			if err != nil {
				next = now.Add(firstBackoff)
			}
			pass = next
		}
		if due := c.checks.next(); !due.IsZero() && !due.After(now) {
			_ = c.checks.pass(c.t.Context())
			pass = now.Add(quiet)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// networked returns how long it takes until the node has its network.
func (c *cluster) networked(name string) time.Duration {
	c.t.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Minute; {
		c.live(100 * time.Millisecond)
		if yes, _ := c.available(); slices.Contains(yes, name) {
			return time.Since(start)
		}
	}
	return 5 * time.Minute
}

func checksOn(n int) emulator.Options {
	config := cloud.DefaultConfig()
	for i := range n {
		config.Instances = append(config.Instances,
			cloud.InstanceConfig{ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: true})
	}
	return emulator.Options{Config: config}
}

// TestNodeWithoutInterfaceDelaysNoOther: a node whose address no interface has is tried again and again, alone; a healthy node that joins
// meanwhile has its network at once.
func TestNodeWithoutInterfaceDelaysNoOther(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(*corev1.Node){
		"wrong --node-ip": withAddresses("10.1.99.99"), "unknown IPv6": withAddresses("2408:4000:100:1::71"),
		"no address": withAddresses("unknown"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, checksOn(3))
				c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck = false })
				c.set(nodeOf(0, bad))
				c.live(5*time.Minute + 3*time.Second)
				c.set(nodeOf(1))
				if took := c.networked("node-1"); took > 4*time.Second {
					t.Errorf("a healthy node had its network after %s beside one that cannot be finished", took)
				}
				if yes, _ := c.available(); slices.Contains(yes, "node-0") {
					t.Error("the bad node has a network although its check is not known")
				}
				if c.emitted()[reasonSourceDestErr] == 0 {
					t.Error("no event says what is wrong with the bad node")
				}
			})
		})
	}
}

// TestIPv6First: a node that names its IPv6 address first has its network as any other, and so has one without any IPv4 address.
func TestIPv6First(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, checksOn(2))
		c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck, o.API = false, ipv6Of{a.Client, "i-1", "2408:4000:100:1::72"} })
		c.set(nodeOf(0, withAddresses("2408:4000:100:1::71", addressOfNode(0))), nodeOf(1, withAddresses("2408:4000:0100:1:0::72")))
		for _, name := range []string{"node-0", "node-1"} {
			if took := c.networked(name); took > 4*time.Second {
				t.Errorf("%s had its network after %s", name, took)
			}
		}
	})
}

// ipv6Of gives the interface of one instance an IPv6 address.
type ipv6Of struct {
	API
	instance, address string
}

func (i ipv6Of) DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error) {
	if len(query.IPv6s) == 0 {
		return i.API.DescribeNetworkInterfaces(ctx, query)
	}
	query.IPv6s, query.PrivateIPs = nil, []string{addressOfNode(1)}
	found, err := i.API.DescribeNetworkInterfaces(ctx, query)
	for at := range found {
		found[at].IPv6s = []string{i.address}
	}
	return found, err
}

// TestCheckSwitchedOnAgain: somebody switches a source/destination check on again. It is off again within a period, for a call per hundred
// nodes and period.
func TestCheckSwitchedOnAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		a := newAccount(t, checksOn(n))
		api := &switchedOn{API: a.Client}
		c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck, o.API = false, api })
		nodes, _ := nodesOf(n)
		c.set(nodes...)
		c.live(time.Minute)
		before := a.Last()
		c.live(10 * defaultPeriod)
		if calls := a.Count(before, "DescribeNetworkInterfaces"); calls < 8 || calls > 12 {
			t.Errorf("%d reads of interfaces in ten periods, want about ten", calls)
		}
		api.instance, before = "i-7", a.Last()
		c.live(defaultPeriod * 12 / 10)
		if writes := a.Count(before, "ModifyNetworkInterfaceAttribute"); writes != 1 {
			t.Errorf("%d writes after somebody switched a check on, want 1", writes)
		}
	})
}

// switchedOn shows the check of one instance to be on until it is switched off.
type switchedOn struct {
	API
	instance string
}

func (s *switchedOn) DescribeNetworkInterfaces(
	ctx context.Context, query alicloud.NetworkInterfaceQuery,
) ([]alicloud.NetworkInterface, error) {
	found, err := s.API.DescribeNetworkInterfaces(ctx, query)
	for i := range found {
		found[i].SourceDestCheck = found[i].SourceDestCheck || found[i].InstanceID == s.instance
	}
	return found, err
}

func (s *switchedOn) DisableSourceDestCheck(ctx context.Context, id string) error {
	s.instance = ""
	return s.API.DisableSourceDestCheck(ctx, id)
}

// gateway turns down calls that name the evil instance or address, as a server does that reads no longer request.
type gateway struct{ API }

var errTooLong = &alicloud.Error{Action: "Call", Status: http.StatusRequestURITooLong}

func (g gateway) CreateRouteEntries(ctx context.Context, routes []alicloud.NewRoute) ([]error, error) {
	if slices.ContainsFunc(routes, func(r alicloud.NewRoute) bool { return strings.HasPrefix(r.InstanceID, "i-evil") }) {
		return nil, errTooLong
	}
	return g.API.CreateRouteEntries(ctx, routes)
}

func (g gateway) DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error) {
	if slices.Contains(query.PrivateIPs, "10.9.9.9") {
		return nil, errTooLong
	}
	return g.API.DescribeNetworkInterfaces(ctx, query)
}

// TestOneNodeSpoilsNoSharedCall: an instance id and an address for which a server turns calls down keep no other node from its network.
func TestOneNodeSpoilsNoSharedCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, checksOn(5))
		c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck, o.API = false, gateway{a.Client} })
		nodes, want := nodesOf(5)
		evil := nodeOf(9, withProviderID("cn-hangzhou.i-evil"+strings.Repeat("a", 5000)), withAddresses("10.9.9.9"))
		c.set(append(nodes, evil)...)
		c.live(15 * time.Second)
		if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
		if yes, _ := c.available(); len(yes) != 5 {
			t.Errorf("nodes with network: %v, want the five innocent ones", yes)
		}
	})
}

// TestRegisteredAgain: Nodes that come back with other pod CIDRs release their old routes, so that a table that was full has room for all.
func TestRegisteredAgain(t *testing.T) {
	t.Parallel()
	for n, within := range map[int]time.Duration{6: 40 * time.Minute, 120: 2 * time.Hour} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				config.Quotas.RouteEntriesPerTable = n * 5 / 3
				a := newAccount(t, emulator.Options{Config: config})
				a.put(n)
				c := newCluster(t, a)
				nodes, _ := nodesOf(n)
				c.set(nodes...)
				c.converge(time.Minute)
				c.unset(nodes...)
				c.passFor(time.Minute)
				want := map[string]string{}
				for i := range n {
					again := nodeOf(i, withCIDR(cidrOf(i+256)), ready)
					again.UID = types.UID(fmt.Sprintf("again-%d", i))
					want[cidrOf(i+256)] = fmt.Sprintf("i-%d", i)
					c.set(again)
				}
				c.passFor(within)
				if diff := cmp.Diff(want, a.Routes(testTable)); diff != "" {
					t.Errorf("routes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRouteToAnotherNode: an entry for a node's pod CIDR that leads to another node of the cluster is put right, whoever made it; one that
// leads elsewhere stays.
func TestRouteToAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(9)
		a.make("by hand", map[string]string{cidrOf(1): "i-0", cidrOf(2): "i-8"})
		c := newCluster(t, a)
		nodes, want := nodesOf(3)
		c.set(nodes...)
		c.converge(time.Minute)
		want[cidrOf(2)] = "i-8"
		c.wantRoutes(testTable, want)
	})
}

// TestWaitsNeedNoWallClock: what is tried again later does not wait for a wall clock that somebody sets back.
func TestWaitsNeedNoWallClock(t *testing.T) {
	t.Parallel()
	r := newRetries()
	for range 5 {
		r.failed(routeKey{table: testTable}, &alicloud.Error{Code: "InvalidTimeStamp.Expired", Status: 400, RequestID: "r"}, time.Now())
		until := r.failures[routeKey{table: testTable}].until
		if text := until.String(); !strings.Contains(text, "m=") {
			t.Fatalf("%s has no monotonic reading", text)
		}
		if wait := time.Until(until); wait < waits.RouteRefused-time.Second || wait > waits.RouteRefused {
			t.Errorf("waits %s", wait)
		}
	}
}

// TestConditionComesBeforeTheTaintGoes: a network plugin that says that it runs does not let pods land on a node without routes.
func TestConditionComesBeforeTheTaintGoes(t *testing.T) {
	t.Parallel()
	node := nodeOf(0, func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse,
			Reason: "FlannelIsUp"}}
	})
	client := fake.NewClientset(node)
	if err := BeginJoining(t.Context(), client, node, true); err != nil {
		t.Fatal(err)
	}
	if n := len(client.Actions()); n != 1 {
		t.Errorf("%d writes, want the condition", n)
	}
	node.Spec.Taints = nil
	if err := BeginJoining(t.Context(), client, node, true); err != nil || len(client.Actions()) != 1 {
		t.Errorf("an initialized node loses its network: %v", err)
	}
}

// TestConditionLeftBehind: where the route controller is left out, a condition that it left behind goes once it has stood for longer than a
// route controller of another program needs.
func TestConditionLeftBehind(t *testing.T) {
	t.Parallel()
	for stood, cleared := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		node := nodeOf(0, func(node *corev1.Node) {
			node.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue, Reason: conditionMissing,
				LastTransitionTime: metav1.NewTime(time.Now().Add(-stood)),
			}}
		})
		client := fake.NewClientset(node)
		informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
		if err := informer.Informer().GetIndexer().Add(node); err != nil {
			t.Fatal(err)
		}
		c, err := NewLeftOutController(Options{Client: client, Nodes: informer, InstanceID: instanceOf})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.queue.ShutDown)
		t.Cleanup(c.conditions.queue.ShutDown)
		err = errors.Join(c.compare(t.Context()), c.conditions.write(t.Context(), node.Name))
		if err != nil || len(client.Actions()) > 0 != cleared {
			t.Errorf("after %s: %d writes, %v", stood, len(client.Actions()), err)
		}
	}
}
