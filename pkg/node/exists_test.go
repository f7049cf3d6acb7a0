package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// period is the stock controller's --node-monitor-period.
const period = 5 * time.Second

// monitor asks for every node as the stock controller does, for a while. It returns how many were called gone, and when
// the first was.
func monitor(c *cluster, nodes []*corev1.Node, during time.Duration) (int, time.Duration) {
	c.t.Helper()
	start, gone, first := time.Now(), map[string]bool{}, time.Duration(0)
	for time.Since(start) < during {
		for _, node := range nodes {
			if exists, err := c.InstanceExists(c.t.Context(), node); err == nil && !exists {
				if len(gone) == 0 {
					first = time.Since(start)
				}
				gone[node.Name] = true
			}
		}
		time.Sleep(period)
	}
	return len(gone), first
}

func TestReleasedInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		var nodes []*corev1.Node
		for _, instance := range a.put(3) {
			nodes = append(nodes, nodeOf(instance, isReady))
		}
		nodes[1] = nodeOf(emulator.Instance{ID: "i-1"})
		c.add(nodes...)
		if gone, _ := monitor(c, nodes, time.Minute); gone != 0 {
			t.Fatalf("%d nodes called gone whose instances exist", gone)
		}
		a.ReleaseInstance("i-1")
		gone, first := monitor(c, nodes, 5*time.Minute)
		if gone != 1 || first < 2*time.Minute || first > 150*time.Second {
			t.Errorf("%d nodes called gone, the first after %s; want 1 after 2 to 2.5 min", gone, first)
		}
	})
}

// lens changes what ECS answers.
type lens struct {
	API
	see func(query alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance
}

func (l lens) DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	answer, err := l.API.DescribeInstances(ctx, query)
	if err != nil {
		return nil, err
	}
	return l.see(query, answer), nil
}

// half is an answer whose second page is lost.
func half(_ alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance {
	return answer[:(len(answer)+1)/2]
}

func only(ids ...string) func(alicloud.InstanceQuery, []alicloud.Instance) []alicloud.Instance {
	return func(_ alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance {
		return slices.DeleteFunc(answer, func(instance alicloud.Instance) bool { return !slices.Contains(ids, instance.ID) })
	}
}

// TestNeverDeleted takes the ways in which a cluster may lose all its nodes by mistake. Each plays with fifty nodes whose
// kubelets are silent, for a quarter of an hour, and must not call one of them gone.
func TestNeverDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		api     func(a *account) API // from the start; nil is the real client
		trouble func(a *account) API // after a healthy minute; nil keeps the API
		region  string
		vpc     string
		node    func(*corev1.Node)
		// during is how long the trouble lasts; the default is a quarter of an hour.
		during time.Duration
		// gone releases the instances after the healthy minute: the nodes are none of ours.
		gone bool
	}{
		"kubelets silent, instances there": {},
		"permission taken away":            {trouble: limited},
		"permission never there":           {api: limited},
		"throttled":                        {trouble: broken(`{"action":"DescribeInstances","code":"Throttling.User","times":100000}`)},
		"cloud in trouble":                 {trouble: broken(`{"action":"*","code":"ServiceUnavailable","status":503,"times":100000}`)},
		"answers lost":                     {trouble: broken(`{"action":"DescribeInstances","drop":"after","times":100000}`)},
		"wrong key":                        {trouble: func(a *account) API { return a.ClientOf("emulator", "wrong") }},
		"other account":                    {api: otherAccount},
		"credentials of another account":   {trouble: otherAccount},
		"temporary key expired":            {trouble: broken(`{"action":"*","code":"InvalidSecurityToken.Expired","status":403,"times":100000}`)},
		"key deleted":                      {trouble: broken(`{"action":"*","code":"InvalidAccessKeyId.NotFound","status":404,"times":100000}`)},
		"permission refused with a code":   {trouble: broken(`{"action":"*","code":"Forbidden.RAM","status":403,"times":100000}`)},
		"list that lags behind all":        {trouble: broken(`{"action":"DescribeInstances","times":0,"stale":"24h"}`)},
		"without provider ID":              {node: withoutProviderID},
		"without provider ID, denied":      {node: withoutProviderID, trouble: limited},
		"without provider ID, never seen":  {node: withoutProviderID, api: limited},
		"without provider ID, other VPC":   {node: withoutProviderID, vpc: "vpc-other"},
		"empty answers":                    {trouble: func(a *account) API { return lens{a.Client, only()} }},
		"other region":                     {region: "cn-beijing"},
		"provider IDs of another region":   {node: otherRegion},
		"half of every answer":             {api: func(a *account) API { return lens{a.Client, half} }},
		"half of every answer, later":      {trouble: func(a *account) API { return lens{a.Client, half} }},
		"on premises":                      {node: onPremises, gone: true},
		"other cloud":                      {node: withProviderID("k3s://worker"), gone: true},
		"hybrid":                           {node: withProviderID("ack-hybrid://cn-hangzhou.i-0"), gone: true},
		"instances of another region":      {node: otherRegion, gone: true},
		"container instances":              {node: withProviderID("cn-hangzhou.eci-1"), gone: true},
		"virtual kubelets":                 {node: withLabel(nodes.LabelType, nodes.TypeVirtualKubelet), gone: true},
		"Lingjun machines":                 {node: withLabel(nodes.LabelLingjun, "true"), gone: true},
		"Lingjun machines without label":   {node: withProviderID("cn-hangzhou.e01-1"), gone: true},
		"opted out":                        {node: withLabel(nodes.LabelExcludeNode, ""), gone: true},
		"opted out, legacy":                {node: withLabel(nodes.LabelExcludeNodeLegacy, "true"), gone: true},
		"malformed provider IDs":           {node: withProviderID("worker-1"), gone: true},
		"list lags behind new instances": {
			api: func(a *account) API { return lens{a.Client, only("i-0")} }, node: createdSoon, during: 4 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{Config: withLimitedKey()})
				api := &switchable{API: a.Client}
				if test.api != nil {
					api.API = test.api(a)
				}
				c := newCluster(t, Options{API: api, Region: test.region, VPCID: test.vpc})
				var nodes []*corev1.Node
				for _, instance := range a.put(50) {
					node := nodeOf(instance)
					if test.node != nil {
						test.node(node)
					}
					nodes = append(nodes, node)
				}
				if test.gone {
					// One of ours that stays: what it is that hides the others is then no question.
					control, err := a.PutInstance("i-control", emulator.InstanceSpec{})
					if err != nil {
						t.Fatal(err)
					}
					nodes = append(nodes, nodeOf(control))
				}
				c.add(nodes...)
				gone, _ := monitor(c, nodes, time.Minute)
				if test.trouble != nil {
					api.API = test.trouble(a)
				}
				if test.gone {
					for i := range 50 {
						a.ReleaseInstance(fmt.Sprintf("i-%d", i))
					}
				}
				later, _ := monitor(c, nodes, cmp.Or(test.during, 15*time.Minute))
				if gone+later != 0 {
					t.Errorf("%d nodes were called gone", gone+later)
				}
			})
		})
	}
}

// onPremises is a node whose address the VPC has never had.
func onPremises(node *corev1.Node) {
	node.Spec.ProviderID, node.Status.Addresses[0].Address = "", "192.168.7.7"
}

// switchable is an API that a test exchanges between two passes.
type switchable struct{ API }

func withLimitedKey() *emulator.Config {
	config := cloud.DefaultConfig()
	config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: "limited", Secret: "secret", Permissions: []string{"slb:*"}})
	return config
}

func limited(a *account) API { return a.ClientOf("limited", "secret") }

func broken(fault string) func(*account) API {
	return func(a *account) API {
		a.Fault(fault)
		return a.Client
	}
}

func otherAccount(a *account) API {
	other := newAccount(a.t, emulator.Options{})
	if _, err := other.PutInstance("i-other", emulator.InstanceSpec{}); err != nil {
		a.t.Fatal(err)
	}
	return other.Client
}

func otherRegion(node *corev1.Node) {
	node.Spec.ProviderID = strings.Replace(node.Spec.ProviderID, testRegion, "cn-beijing", 1)
}

func withoutProviderID(node *corev1.Node) { node.Spec.ProviderID = "" }

func createdSoon(node *corev1.Node) { node.CreationTimestamp = metav1.Now() }

// TestReadyNodeStays: a kubelet that reports is better evidence than any list.
func TestReadyNodeStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		a.put(3)
		nodes := []*corev1.Node{nodeOf(emulator.Instance{ID: "i-gone"}, isReady), nodeOf(emulator.Instance{ID: "i-1"}, isReady)}
		c.add(nodes...)
		if gone, _ := monitor(c, nodes, 2*time.Minute); gone != 0 {
			t.Errorf("%d ready nodes were called gone", gone)
		}
	})
}

// TestSameNameAnotherMachine: a Node is registered again under its name for another machine, while the old one's instance is missing for
// almost long enough. What was counted for the old one does not count for the new one.
func TestSameNameAnotherMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		all := a.put(3)
		old, other := nodeOf(all[0]), nodeOf(all[1])
		c.add(old, other)
		monitor(c, []*corev1.Node{old, other}, period)
		a.ReleaseInstance("i-0")
		if gone, _ := monitor(c, []*corev1.Node{old, other}, 100*time.Second); gone != 0 {
			t.Fatalf("%d nodes were called gone", gone)
		}
		again := nodeOf(all[2], func(node *corev1.Node) { node.Name = old.Name })
		c.add(again)
		if gone, _ := monitor(c, []*corev1.Node{again, other}, time.Minute); gone != 0 {
			t.Errorf("%d nodes were called gone", gone)
		}
		a.ReleaseInstance("i-2")
		if gone, first := monitor(c, []*corev1.Node{again, other}, 5*time.Minute); gone != 1 || first < 2*time.Minute {
			t.Errorf("%d nodes were called gone, the first after %s; want 1 after 2 min at least", gone, first)
		}
	})
}

// TestUnseenInstanceGetsEvent: a silent node whose instance no answer ever showed stays, and gets an event with the next pass, not
// when the stock node controller tries again.
func TestUnseenInstanceGetsEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		a.put(1)
		nodes := []*corev1.Node{nodeOf(emulator.Instance{ID: "i-0"}), nodeOf(emulator.Instance{ID: "i-none"}, createdSoon)}
		c.add(nodes...)
		if gone, _ := monitor(c, nodes, listLag-time.Second); gone != 0 || len(c.eventReasons()) != 0 {
			t.Errorf("within the list's lag %d nodes were called gone, or an event was emitted", gone)
		}
		if gone, _ := monitor(c, nodes, listLag); gone != 0 {
			t.Errorf("%d nodes were called gone", gone)
		}
		if reasons := c.eventReasons(); !slices.Equal(reasons, []string{reasonInstanceNotFound}) {
			t.Errorf("events = %v, want one %s", reasons, reasonInstanceNotFound)
		}
	})
}

// TestDeletionCap releases a whole cluster but one machine at once.
func TestDeletionCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(50))
		monitor(c, nodes, 10*time.Second)
		for i := 1; i < 50; i++ {
			a.ReleaseInstance(fmt.Sprintf("i-%d", i))
		}
		if gone, _ := monitor(c, nodes, 4*time.Minute); gone != 5 {
			t.Errorf("%d nodes were called gone in the first interval, want the cap of 5", gone)
		}
		if reasons := c.eventReasons(); !slices.Contains(reasons, reasonDeletionDeferred) {
			t.Errorf("events = %v, want a %s", reasons, reasonDeletionDeferred)
		}
		if gone, _ := monitor(c, nodes[10:], 5*time.Minute); gone != 5 {
			t.Errorf("%d further nodes were called gone in the second interval, want 5", gone)
		}
	})
}

// TestLastInstance: a cluster of one machine has no control of its own; another machine of the VPC serves.
func TestLastInstance(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"alone in the VPC": 0, "with another machine in the VPC": 1, "in a VPC of many pages": 250} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client})
				instance, err := a.PutInstance("i-only", emulator.InstanceSpec{})
				if err != nil {
					t.Fatal(err)
				}
				a.put(others)
				nodes := []*corev1.Node{nodeOf(instance)}
				c.add(nodes...)
				monitor(c, nodes, 10*time.Second)
				a.ReleaseInstance("i-only")
				before := a.Last()
				if gone, _ := monitor(c, nodes, 10*time.Minute); gone != min(1, others) {
					t.Errorf("%d nodes were called gone, want %d", gone, min(1, others))
				}
				for _, call := range a.Calls(before) {
					if call.Parameters["NextToken"] != "" {
						t.Error("the pages of the whole VPC are read to see whether it has another instance")
						break
					}
				}
			})
		})
	}
}

func TestReturningInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(3)
		api := &switchable{API: a.Client}
		c := newCluster(t, Options{API: api})
		nodes := []*corev1.Node{nodeOf(emulator.Instance{ID: "i-0"}), nodeOf(emulator.Instance{ID: "i-1"}, isReady),
			nodeOf(emulator.Instance{ID: "i-2"}, isReady)}
		c.add(nodes...)
		monitor(c, nodes, 10*time.Second)
		for range 20 { // absent for almost long enough, present for as long as it takes to notice
			api.API = lens{a.Client, only("i-1", "i-2")}
			gone, _ := monitor(c, nodes, 100*time.Second)
			api.API = a.Client
			back, _ := monitor(c, nodes, 30*time.Second)
			if gone+back != 0 {
				t.Fatal("an instance that flickers in the list was called gone")
			}
		}
	})
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		instance := a.put(1)[0]
		node := nodeOf(instance)
		c.add(node)
		for status, want := range map[string]bool{
			alicloud.InstanceRunning: false, alicloud.InstanceStopping: false, alicloud.InstanceStopped: true,
			alicloud.InstanceStarting: false, alicloud.InstancePending: false,
		} {
			if _, err := a.PutInstance("i-0", emulator.InstanceSpec{Status: status}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(period)
			if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
				t.Errorf("%s: exists = %v, %v, want true", status, exists, err)
			}
			if shutdown, err := c.InstanceShutdown(t.Context(), node); shutdown != want || err != nil {
				t.Errorf("%s: shutdown = %v, %v, want %v", status, shutdown, err, want)
			}
		}
	})
}
