package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// groupedBoth are two groups of one name, one of CLBs and one of NLBs, and web, which goes from one to the other.
type groupedBoth struct{ *both }

const webPort, otherPort = 80, 81

func newGroupedBoth(t *testing.T, webIsNLB bool) groupedBoth {
	t.Helper()
	g := groupedBoth{newBoth(t, 1)}
	g.put("web", webPort, webIsNLB)
	g.put("clb", otherPort, false)
	g.put("nlb", otherPort, true)
	g.settle()
	return g
}

// put makes a Service of the group edge.
func (g groupedBoth) put(name string, port int32, isNLB bool) {
	g.t.Helper()
	g.both.put(name, isNLB, func(svc *corev1.Service) {
		svc.Spec.Ports = []corev1.ServicePort{testkube.Port(port, corev1.ProtocolTCP)}
		svc.CreationTimestamp = metav1.Unix(1_000_000+int64(g.made), 0)
		testkube.Annotation(annotation.Group.Key(), "edge")(svc)
	})
}

// served are the listeners that run and have both nodes as members, by product.
func (g groupedBoth) served() map[string][]string {
	g.t.Helper()
	ctx, found := g.t.Context(), map[string][]string{"CLB": {}, "NLB": {}}
	note := func(product string, running bool, port int, owner string, members int) {
		text := fmt.Sprintf("%d %s", port, owner)
		if !running || members != 2 {
			text += fmt.Sprintf(" (running %v, %d members)", running, members)
		}
		found[product] = append(found[product], text)
		slices.Sort(found[product])
	}
	for _, lb := range testkit.Must(g.client.ListNLBs(ctx, alicloud.NLBQuery{}))(g.t) {
		for _, l := range testkit.Must(g.client.ListNLBListeners(ctx, []string{lb.ID}))(g.t) {
			owner, _, _ := mark.ParseNLB(*l.Description)
			servers := testkit.Must(g.client.ListNLBServers(ctx, *l.ServerGroupID))(g.t)
			note("NLB", l.Status == alicloud.NLBListenerRunning, l.Port, owner.Name, len(servers))
		}
	}
	for _, lb := range testkit.Must(g.client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{}))(g.t) {
		for _, l := range testkit.Must(g.client.DescribeListeners(ctx, lb.ID))(g.t)[lb.ID] {
			owner, _, _ := mark.Parse(l.Description)
			group := testkit.Must(g.client.DescribeVServerGroup(ctx, l.VServerGroupID))(g.t)
			note("CLB", l.Status == alicloud.ListenerRunning, l.Port, owner.Name, len(group.Backends))
		}
	}
	return found
}

// others checks that the Services which stay are served.
func (g groupedBoth) others(when string) {
	g.t.Helper()
	served := g.served()
	for product, name := range map[string]string{"CLB": "clb", "NLB": "nlb"} {
		if !slices.Contains(served[product], fmt.Sprintf("%d %s", otherPort, name)) {
			g.t.Errorf("%s: %s is not served: %v", when, name, served)
		}
	}
}

// settle lets time pass while the others are served.
func (g groupedBoth) settle() {
	g.t.Helper()
	for quiet := 0; quiet < 12; quiet++ {
		before := g.server.Last()
		time.Sleep(10 * time.Second)
		g.collect()
		if g.writes(before) > 0 {
			quiet = -1
		}
	}
}

// ends checks that web has what it needs from one product, and that nothing is left once all Services are gone.
func (g groupedBoth) ends(webIsNLB bool) {
	g.t.Helper()
	g.settle()
	g.others("in the end")
	want := map[string][]string{"CLB": {"81 clb"}, "NLB": {"81 nlb"}}
	product := "CLB"
	if webIsNLB {
		product = "NLB"
	}
	want[product] = append([]string{"80 web"}, want[product]...)
	if diff := cmp.Diff(want, g.served()); diff != "" {
		g.t.Errorf("listeners (-want +got):\n%s", diff)
	}
	web := testkit.Must(g.kube.CoreV1().Services(testkube.Namespace).Get(g.t.Context(), "web", metav1.GetOptions{}))(g.t)
	if shown := web.Status.LoadBalancer.Ingress; len(shown) != 1 || (shown[0].Hostname != "") != webIsNLB ||
		slices.Contains(web.Finalizers, nlb.Finalizer) != webIsNLB || len(web.Finalizers) != 1 {
		g.t.Errorf("web shows %+v and has the finalizers %v", shown, web.Finalizers)
	}
	for _, name := range []string{"web", "clb", "nlb"} {
		g.remove(name)
	}
	g.settle()
	groups := testkit.Must(g.client.ListNLBGroups(g.t.Context(), alicloud.NLBGroupQuery{}))(g.t)
	nlbs, clbs := testkit.Must(g.client.ListNLBs(g.t.Context(),
		alicloud.NLBQuery{}))(g.t), testkit.Must(g.client.DescribeLoadBalancers(g.t.Context(), alicloud.LoadBalancerQuery{}))(g.t)
	if left := len(g.services()); left+len(nlbs)+len(clbs)+len(groups) > 0 {
		g.t.Errorf("after the last Service, %d Services, %d NLBs with %d server groups and %d CLBs stay", left, len(nlbs), len(groups), len(clbs))
	}
	g.stop()
}

// TestClassChangeInAGroup: a Service of a group goes from one product to the other, by a change or as a new Service of its name, while a
// group of the same name lives on with each product. The others are served all the time, and nothing is left behind, also if the process is
// cut off after any of its writes.
func TestClassChangeInAGroup(t *testing.T) {
	t.Parallel()
	for name, toNLB := range map[string]bool{"CLB to NLB": true, "NLB to CLB": false} {
		for how, change := range map[string]func(groupedBoth){
			"changed": func(g groupedBoth) {
				g.change("web", func(svc *corev1.Service) {
					svc.Spec.LoadBalancerClass = nil
					if delete(svc.Annotations, zoneMaps); toNLB {
						testkube.Class(nlb.Class)(svc)
						svc.Annotations[zoneMaps] = "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"
					}
				})
			},
			"deleted and created": func(g groupedBoth) {
				g.remove("web")
				for range 60 {
					time.Sleep(time.Second)
					if g.collect(); len(g.services()) < 3 {
						break
					}
				}
				if len(g.services()) == 3 { // the process is cut off
					g.stop()
					g.server.ClearFaults()
					g.stop = serveServices(g.t, g.server, g.kube, Settings{})
					g.settle()
				}
				g.put("web", webPort, toNLB)
			},
		} {
			writes := 0
			t.Run(strings.Join([]string{name, how}, ", "), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGroupedBoth(t, !toNLB)
					before := g.server.Last()
					change(g)
					for range 90 {
						time.Sleep(2 * time.Second)
						g.others("meanwhile")
					}
					writes = g.writes(before)
					g.ends(toNLB)
				})
			})
			for i := range writes {
				t.Run(fmt.Sprintf("%s, %s, cut off after %d writes", name, how, i), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						g := newGroupedBoth(t, !toNLB)
						g.server.Fault(fmt.Sprintf(`{"action":"*","kind":"write","after":%d,"times":0,"drop":"before"}`, i))
						change(g)
						time.Sleep(time.Minute)
						g.stop()
						g.server.ClearFaults()
						g.stop = serveServices(g.t, g.server, g.kube, Settings{})
						for range 30 {
							time.Sleep(2 * time.Second)
							g.others("meanwhile")
						}
						g.ends(toNLB)
					})
				})
			}
		}
	}
}
