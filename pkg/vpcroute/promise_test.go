package vpcroute

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// uninitialized makes a node one that has just been registered.
func uninitialized(node *corev1.Node) {
	node.CreationTimestamp = metav1.Now()
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: cloudproviderapi.TaintExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule})
}

// networked gives the node the condition of a working network.
func networked(node *corev1.Node) {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: conditionCreated,
	})
}

// passFor makes passes as they come due for so long.
func (c *cluster) passFor(duration time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(duration); time.Now().Before(end); {
		next, err := c.pass(c.t.Context())
		if err != nil {
			next = time.Now().Add(firstBackoff)
		}
		time.Sleep(max(time.Millisecond, min(time.Until(next), time.Until(end))))
	}
}

// TestNoConditionWhileTablesCannotBeRead: a node that joins while no table can be read is unavailable from its first moment, one
// that works is left alone, and an event and a metric say what is wrong.
func TestNoConditionWhileTablesCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		joining *corev1.Node
		fault   string
	}{
		"forbidden": {nodeOf(1, uninitialized),
			`{"action":"DescribeRouteEntryList","code":"Forbidden.RAM","status":403,"times":0}`},
		"deleted": {nodeOf(1, uninitialized),
			`{"action":"DescribeRouteEntryList","code":"InvalidRouteTable.NotFound","status":400,"times":0}`},
		"no answer": {nodeOf(1, uninitialized), `{"action":"DescribeRouteEntryList","drop":"after","times":0}`},
		"waits for a provider ID": {nodeOf(1, uninitialized, withProviderID("")),
			`{"action":"DescribeRouteEntryList","drop":"after","times":0}`},
		"young and without taint": {nodeOf(1, func(n *corev1.Node) {
			n.CreationTimestamp = metav1.Now()
		}), `{"action":"DescribeRouteEntryList","drop":"after","times":0}`},
		"the tables are not known": {nodeOf(1, uninitialized), `{"action":"DescribeVSwitches","drop":"after","times":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(3)
				c := newCluster(t, a)
				a.Fault(test.fault)
				test.joining.CreationTimestamp = metav1.Now()
				c.set(nodeOf(0, networked), nodeOf(2), test.joining)
				c.passFor(10 * time.Minute)
				if _, no := c.available(); !slices.Equal(no, []string{"node-1"}) {
					t.Errorf("nodes without network: %v, want the one that joins", no)
				}
				emitted := c.emitted()
				if emitted[reasonReadFailed]+emitted[reasonTablesUnknown] != 1 {
					t.Errorf("events %v, want one about the table", emitted)
				}
				if n := a.Count(0, "DescribeRouteEntryList", "DescribeVSwitches"); n > 40 {
					t.Errorf("%d reads in ten minutes", n)
				}
			})
		})
	}
}

// TestNodesOutsideTheCloudKeepTheirNetwork: a node whose taint goes without a provider ID is none of ours.
func TestNodesOutsideTheCloudKeepTheirNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newAccount(t, emulator.Options{}))
		c.set(nodeOf(0, withProviderID(""), func(node *corev1.Node) {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue,
				Reason: conditionMissing}}
		}))
		c.kickPass()
		if yes, no := c.available(); !slices.Equal(yes, []string{"node-0"}) || len(no) > 0 {
			t.Errorf("with network: %v, without: %v", yes, no)
		}
	})
}

// TestEmptyAnswerTakesNoNetwork: one answer that lacks the entries is not enough (the finding EmptyBodyTakesTheNetwork).
func TestEmptyAnswerTakesNoNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, transport, _, want := routedBehindEmptyOnce(t)
		transport.armed = true
		before := c.account.Last()
		c.drift = time.Time{}
		c.kickPass()
		if _, no := c.available(); len(no) > 0 || transport.armed {
			t.Errorf("an empty list takes the network from %d nodes", len(no))
		}
		if n := c.account.Count(before, writes...); n > 0 {
			t.Errorf("%d writes", n)
		}
		c.wantRoutes(testTable, want)
	})
}

// TestEmptyFirstAnswerTakesNoNetwork: a process that has just started has nothing to compare the first list with but what the nodes say.
func TestEmptyFirstAnswerTakesNoNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, transport, nodes, want := routedBehindEmptyOnce(t)
		for _, node := range nodes {
			node.Status.Conditions = append(node.Status.Conditions,
				corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: conditionCreated})
		}
		c.restart()
		transport.armed = true
		before := c.account.Last()
		c.kickPass()
		if _, no := c.available(); len(no) > 0 || transport.armed {
			t.Errorf("an empty list takes the network from %d nodes (armed %v)", len(no), transport.armed)
		}
		if n := c.account.Count(before, writes...); n > 0 {
			t.Errorf("%d writes", n)
		}
		c.wantRoutes(testTable, want)
	})
}

// routedBehindEmptyOnce makes a cluster of 60 nodes with routes, whose cloud can be made to answer once with an empty list.
func routedBehindEmptyOnce(t *testing.T) (c *cluster, transport *emptyOnce, nodes []*corev1.Node, want map[string]string) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	a.put(60)
	transport = &emptyOnce{RoundTripper: a.Transport()}
	client := a.NewClient(func(o *alicloud.Options) { o.Transport = transport })
	c = newCluster(t, a, func(o *Options) { o.API = client })
	nodes, want = nodesOf(60)
	c.set(nodes...)
	c.converge(time.Minute)
	time.Sleep(time.Second)
	return c, transport, nodes, want
}

// emptyOnce answers one list of route entries with an empty one.
type emptyOnce struct {
	http.RoundTripper
	armed bool
}

func (e *emptyOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	text := request.URL.RawQuery
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		text += string(body)
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	response, err := e.RoundTripper.RoundTrip(request)
	if err == nil && e.armed && strings.Contains(text, "DescribeRouteEntryList") {
		e.armed = false
		response.Body = io.NopCloser(bytes.NewBufferString(`{"RequestId":"empty","RouteEntrys":{"RouteEntry":[]}}`))
		response.ContentLength = -1
		response.Header.Del("Content-Length")
	}
	return response, err
}

// TestAvailableWhileSourceDestCheckIsOn: a node whose check is on has no network, one whose check is not known keeps what it has.
func TestAvailableWhileSourceDestCheckIsOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault string
		no    []string
	}{
		"cannot be switched off": {`{"action":"ModifyNetworkInterfaceAttribute","code":"Forbidden.RAM","status":403,"times":0}`,
			[]string{"node-0", "node-1"}},
		"cannot be read": {`{"action":"DescribeNetworkInterfaces","code":"Forbidden.RAM","status":403,"times":0}`, []string{"node-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				for i := range 2 {
					config.Instances = append(config.Instances,
						cloud.InstanceConfig{ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: true})
				}
				a := newAccount(t, emulator.Options{Config: config})
				a.Fault(test.fault)
				c := newCluster(t, a, func(o *Options) { o.SkipSourceDestCheck = false })
				c.set(nodeOf(0, networked), nodeOf(1, uninitialized))
				for range 5 {
					c.passFor(10 * time.Second)
					if err := c.checkAll(t.Context()); err == nil {
						t.Error("no error")
					}
				}
				c.converge(time.Minute)
				if _, no := c.available(); !slices.Equal(no, test.no) && !slices.Equal(no, []string{"node-0"}) {
					t.Errorf("nodes without network: %v, want %v", no, test.no)
				}
				if n := c.emitted()[reasonSourceDestErr]; n == 0 {
					t.Error("no event says why")
				}
				a.Admin(http.MethodDelete, "/_emulator/faults", "")
				if err := c.checkAll(t.Context()); err != nil {
					t.Error(err)
				}
				c.kickPass()
				if _, no := c.available(); len(no) > 0 {
					t.Errorf("nodes without network although all checks are off: %v", no)
				}
			})
		})
	}
}

// TestOutsideClusterCIDRTaintsNoWorkingNode: that this program routes nothing does not mean that nobody does.
func TestOutsideClusterCIDRTaintsNoWorkingNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(2)
		a.make("", map[string]string{"10.99.0.0/24": "i-0"})
		c := newCluster(t, a)
		c.set(nodeOf(0, networked, withCIDR("10.99.0.0/24")), nodeOf(1, uninitialized, withCIDR("10.99.1.0/24")))
		c.converge(time.Minute)
		if _, no := c.available(); !slices.Equal(no, []string{"node-1"}) {
			t.Errorf("nodes without network: %v, want the one that joins", no)
		}
		if diff := cmp.Diff(map[string]string{"10.99.0.0/24": "i-0"}, a.Routes(testTable)); diff != "" {
			t.Errorf("routes (-want +got):\n%s", diff)
		}
		if n := c.emitted()[reasonInvalidCIDR]; n != 2 {
			t.Errorf("%d events, want 2", n)
		}
	})
}

// TestWholeClusterCIDR: a Node whose pod CIDR is that of the cluster gets no route, also where no other Node has one yet.
func TestWholeClusterCIDR(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(1)
		c := newCluster(t, a)
		c.set(nodeOf(0, withCIDR("10.244.0.0/16"), uninitialized))
		c.converge(time.Minute)
		c.wantRoutes(testTable, map[string]string{})
		if emitted := c.emitted(); emitted[reasonInvalidCIDR] != 1 {
			t.Errorf("events %v, want one about the pod CIDR", emitted)
		}
	})
}

// TestOverlappingPodCIDRs: a pod CIDR inside or around that of an older node, or the whole cluster CIDR, is never routed.
func TestOverlappingPodCIDRs(t *testing.T) {
	t.Parallel()
	for _, cidr := range []string{"10.244.1.0/25", "10.244.1.77/32", "10.244.0.0/23", "10.244.1.0/24", "10.244.0.0/16"} {
		for _, excluded := range []bool{false, true} {
			t.Run(fmt.Sprint(cidr, excluded), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := newAccount(t, emulator.Options{})
					a.put(3)
					c := newCluster(t, a)
					old := nodeOf(1, withCIDR("10.244.1.0/24"), func(node *corev1.Node) {
						node.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
						if excluded {
							node.Labels["service.alibabacloud.com/exclude-node"] = ""
						}
					})
					evil := nodeOf(0, withCIDR(cidr), uninitialized)
					c.set(old, evil, nodeOf(2))
					c.converge(time.Minute)
					want := map[string]string{"10.244.1.0/24": "i-1", cidrOf(2): "i-2"}
					if excluded {
						delete(want, "10.244.1.0/24")
					}
					c.wantRoutes(testTable, want)
					if _, no := c.available(); !slices.Equal(no, []string{"node-0"}) {
						t.Errorf("nodes without network: %v, want node-0", no)
					}
					if emitted := c.emitted(); emitted[reasonConflict]+emitted[reasonInvalidCIDR] != 1 {
						t.Errorf("events %v, want one about the pod CIDR", emitted)
					}
				})
			})
		}
	}
}
