package provider

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	bounds "github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// lasting is what goes wrong for a while in a soak.
type lasting struct {
	// end ends it, at until; nil while nothing lasts.
	end   func()
	until time.Time
	// begun counts those that began, touched are the ids of load balancers on which somebody else had a listener, and kept is how many of
	// those stayed without their Service.
	begun   map[string]int
	touched sets.Set[string]
	kept    int
}

// lastingKinds are what can last, in turn, so that each comes in a short soak, too.
var lastingKinds = []string{"endpoint without interface", "locked", "foreign listener", "unreadable"}

// partsRead are the reads of which one fails for long.
var partsRead = []string{
	"DescribeLoadBalancerListeners", "ListListeners", "DescribeVServerGroupAttribute", "ListServerGroupServers", "DescribeVServerGroups",
	"ListServerGroups", "DescribeLoadBalancerAttribute", "GetLoadBalancerAttribute", "DescribeLoadBalancers", "ListLoadBalancers",
}

// beginLasting has the next thing go wrong that lasts, unless one does.
func (b *both) beginLasting() {
	if b.lasting.end != nil {
		return
	}
	n := 0
	for _, count := range b.lasting.begun {
		n += count
	}
	kind := lastingKinds[n%len(lastingKinds)]
	b.lasting.begun[kind]++
	b.lasting.until, b.lasting.end = time.Now().Add(*bothFor/16+time.Duration(b.random.Int64N(int64(*bothFor/8)))), func() {}
	b.server.ClearFaults()
	switch kind {
	case "endpoint without interface":
		b.endpointWithoutInterface(fmt.Sprintf("s%d", b.random.IntN(8)))
	case "locked":
		b.lock("locked", "FinancialLocked")
		b.lasting.end = func() { b.lock("active") }
	case "foreign listener":
		b.listen()
		b.lasting.end = b.unlisten
	default:
		b.server.Fault(fmt.Sprintf(`{"action":%q,"code":"Forbidden.RAM","status":403,"times":0}`, partsRead[b.random.IntN(len(partsRead))]))
	}
}

// endLasting ends what lasts, if it is over by then.
func (b *both) endLasting(now time.Time) {
	if b.lasting.end != nil && !now.Before(b.lasting.until) {
		b.server.ClearFaults()
		b.lasting.end()
		b.lasting.end = nil
	}
}

// endpointWithoutInterface gives a Service a pod on a virtual node, of whose address the cloud knows nothing. It stays to the end.
func (b *both) endpointWithoutInterface(name string) {
	ctx := b.t.Context()
	virtual := testkube.Node("vk", testkube.NodeLabel(nodes.LabelType, nodes.TypeVirtualKubelet), testkube.ProviderID("other://vk"))
	slice := testkube.EndpointSlice(name, testkube.Port(80, corev1.ProtocolTCP), "10.9.9.9@vk")
	_, _ = b.kube.CoreV1().Nodes().Create(ctx, virtual, metav1.CreateOptions{})                               //nolint:errcheck // it may be there
	_, _ = b.kube.DiscoveryV1().EndpointSlices(testkube.Namespace).Create(ctx, slice, metav1.CreateOptions{}) //nolint:errcheck // as before
}

// balancers returns those of both products.
func (b *both) balancers() ([]alicloud.LoadBalancer, []alicloud.NLB) {
	b.t.Helper()
	return testkit.Must(b.client.DescribeLoadBalancers(b.t.Context(), alicloud.LoadBalancerQuery{}))(b.t),
		testkit.Must(b.client.ListNLBs(b.t.Context(), alicloud.NLBQuery{}))(b.t)
}

// lock locks all load balancers, or unlocks them.
func (b *both) lock(status string, locks ...string) {
	b.t.Helper()
	clbs, nlbs := b.balancers()
	for i := range clbs {
		b.server.Admin("PUT", "/_emulator/loadbalancers/"+clbs[i].ID, fmt.Sprintf(`{"LoadBalancerStatus":%q}`, status))
	}
	for i := range nlbs {
		b.server.SetNLBLocks(nlbs[i].ID, locks...)
	}
}

// listen makes a listener by hand on each load balancer that has one, which leads to a group of ours. The cloud may refuse it, because the
// manager is about to change the load balancer.
func (b *both) listen() {
	b.t.Helper()
	clbs, nlbs := b.balancers()
	for i := range clbs {
		id := clbs[i].ID
		if there := testkit.Must(b.client.DescribeListeners(b.t.Context(), id))(b.t)[id]; len(there) > 0 &&
			b.client.CreateListener(b.t.Context(), id,
				alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 9090, Protocol: alicloud.ProtocolTCP}, Description: byHand,
					VServerGroupID: there[0].VServerGroupID, Attributes: alicloud.Attributes{}}) == nil {
			b.lasting.touched.Insert(id)
		}
	}
	for i := range nlbs {
		id, text := nlbs[i].ID, byHand
		there := testkit.Must(b.client.ListNLBListeners(b.t.Context(), []string{id}))(b.t)
		if len(there) == 0 {
			continue
		}
		if _, _, err := b.client.CreateNLBListener(b.t.Context(), alicloud.NLBListener{LoadBalancerID: id, Port: 9090, Protocol: alicloud.NLBTCP,
			NLBListenerSettings: alicloud.NLBListenerSettings{Description: &text, ServerGroupID: there[0].ServerGroupID}}, rand.Text()); err == nil {
			b.lasting.touched.Insert(id)
		}
	}
}

// unlisten removes the listeners that were made by hand.
func (b *both) unlisten() {
	b.t.Helper()
	clbs, nlbs := b.balancers()
	ctx := b.t.Context()
	for i := range clbs {
		for _, l := range testkit.Must(b.client.DescribeListeners(ctx, clbs[i].ID))(b.t)[clbs[i].ID] {
			if l.Description == byHand {
				testkit.Check(b.t, b.client.DeleteListener(ctx, clbs[i].ID, l.ListenerKey))
			}
		}
	}
	for i := range nlbs {
		for _, l := range testkit.Must(b.client.ListNLBListeners(ctx, []string{nlbs[i].ID}))(b.t) {
			if *l.Description == byHand {
				b.insist(func() error {
					_, err := b.client.DeleteNLBListener(ctx, l.ID)
					return err
				})
			}
		}
	}
}

// insist does something as soon as no job of the manager is in the way.
func (b *both) insist(do func() error) {
	b.t.Helper()
	var err error
	for range 30 {
		if err = do(); err == nil || alicloud.IsNotFound(err) {
			return
		}
		time.Sleep(time.Second)
	}
	b.t.Errorf("by hand: %v", err)
}

// deleteKept deletes what stayed when a Service went, because somebody else used it, as the event asks for.
func (b *both) deleteKept() {
	b.t.Helper()
	ctx, wanted := b.t.Context(), sets.New[string]()
	time.Sleep(bounds.InUse + driftFound)
	b.collect()
	for _, svc := range b.services() {
		wanted.Insert("a" + strings.ReplaceAll(string(svc.UID), "-", ""))
	}
	clbs, nlbs := b.balancers()
	for i := range clbs {
		if id := clbs[i].ID; b.lasting.touched.Has(id) && !wanted.Has(clbs[i].Name) {
			testkit.Check(b.t, b.client.SetDeleteProtection(ctx, id, "off"))
			testkit.Check(b.t, b.client.DeleteLoadBalancer(ctx, id))
			b.lasting.kept++
		}
	}
	for i := range nlbs {
		if id := nlbs[i].ID; b.lasting.touched.Has(id) && !wanted.Has(nlbs[i].Name) {
			b.insist(func() error { return b.client.ProtectNLB(ctx, id, alicloud.NLBProtection{Deletion: new(false)}) })
			b.insist(func() error {
				_, err := b.client.DeleteNLB(ctx, id)
				return err
			})
			b.lasting.kept++
		}
	}
	time.Sleep(time.Minute)
	for _, group := range testkit.Must(b.client.ListNLBGroups(ctx, alicloud.NLBGroupQuery{}))(b.t) {
		if owner, _ := group.Tag(mark.TagOwner); b.lasting.kept > 0 && !wanted.Has(owner) {
			if servers := testkit.Must(b.client.ListNLBServers(ctx, group.ID))(b.t); len(servers) > 0 {
				b.t.Errorf("server group %s of a Service that is gone has the servers %v", group.Name, servers)
			}
			b.insist(func() error {
				_, err := b.client.DeleteNLBGroup(ctx, group.ID)
				return err
			})
		}
	}
}
