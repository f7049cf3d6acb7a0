package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// existing makes a load balancer that somebody else has made, and returns its ID.
func (b *both) existing(isNLB bool) string {
	b.t.Helper()
	if !isNLB {
		return testkit.Must(b.client.CreateLoadBalancer(b.t.Context(), alicloud.LoadBalancer{Name: "mine", AddressType: alicloud.AddressInternet},
			"mine"))(b.t).ID
	}
	id := testkit.Must(b.client.CreateNLB(b.t.Context(), alicloud.NLB{
		Name: "mine", VPCID: emulatortest.VPC, AddressType: alicloud.NLBInternet,
		Zones: []alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"}},
	}, "mine"))(b.t)
	time.Sleep(10 * time.Second)
	return id
}

// swap is a Service, older, that moves from an existing load balancer to a group, and another one, younger, that moves from the group to
// that load balancer. Both have the same port.
type swap struct {
	name string
	// olderFirst says that the older one begins, and the younger one follows after a time.
	olderFirst bool
	after      time.Duration
	// keeps says that the younger one is served all the time.
	keeps bool
}

func swaps() []swap {
	return []swap{
		{"the younger one long before", false, time.Hour, true},
		{"the younger one before", false, 40 * time.Second, true},
		{"the younger one just before", false, time.Second, true},
		{"at once", true, 0, false},
		{"the older one just before", true, time.Second, false},
		{"the older one before", true, 10 * time.Second, false},
		{"the older one long before", true, time.Hour, false},
	}
}

// TestSwapOfGroupAndExisting: in the end, both Services are served where their status says, whichever of them begins. Neither loses what
// serves it, except that the older one gets the port of the younger one as long as that asks for the group.
func TestSwapOfGroupAndExisting(t *testing.T) {
	t.Parallel()
	for product, isNLB := range []bool{false, true} {
		for i, swap := range swaps() {
			for _, restarted := range []bool{false, true} {
				if restarted && swap.after > time.Minute || !testkit.Tried(product+i, 2) {
					continue
				}
				t.Run(fmt.Sprintf("%s, NLB %v, restarted %v", swap.name, isNLB, restarted), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { swap.run(groupedBoth{newBoth(t, 1)}, isNLB, restarted) })
				})
			}
		}
	}
}

func toExisting(id string) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		delete(svc.Annotations, annotation.Group.Key())
		testkube.Annotation(annotation.LoadBalancerID.Key(), id)(svc)
		testkube.Annotation(annotation.ForceOverrideListeners.Key(), "true")(svc)
	}
}

func toGroup(svc *corev1.Service) {
	delete(svc.Annotations, annotation.LoadBalancerID.Key())
	delete(svc.Annotations, annotation.ForceOverrideListeners.Key())
	testkube.Annotation(annotation.Group.Key(), "edge")(svc)
}

func (s swap) run(g groupedBoth, isNLB, restarted bool) {
	id := g.existing(isNLB)
	g.put("older", webPort, isNLB)
	g.change("older", toExisting(id))
	g.put("younger", webPort, isNLB)
	time.Sleep(3 * time.Minute)
	first, second := func() { g.change("younger", toExisting(id)) }, func() { g.change("older", toGroup) }
	if s.olderFirst {
		first, second = second, first
	}
	watched := []string{"older"}
	if s.keeps {
		watched = append(watched, "younger")
	}
	first()
	g.watch(s.after, watched...)
	second()
	if restarted {
		g.watch(5*time.Second, watched...)
		g.stop()
		g.stop = serveServices(g.t, g.server, g.kube, Settings{})
	}
	g.watch(5*time.Minute, watched...)
	time.Sleep(30 * time.Minute)
	g.watch(time.Second, "older", "younger")
	g.stop()
}

// TestOlderServiceJoinsFromExisting: an older Service that joins a group from an existing load balancer gets the port of a younger one
// within seconds, although nothing else is to be done for it.
func TestOlderServiceJoinsFromExisting(t *testing.T) {
	t.Parallel()
	for _, isNLB := range []bool{false, true} {
		t.Run(fmt.Sprintf("NLB %v", isNLB), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := groupedBoth{newBoth(t, 1)}
				id := g.existing(isNLB)
				g.put("older", webPort, isNLB)
				g.change("older", toExisting(id))
				g.put("younger", webPort, isNLB)
				time.Sleep(3 * time.Minute)
				g.change("older", toGroup)
				g.watch(20*time.Second, "older")
				if served := g.served(); slices.ContainsFunc(slices.Concat(served["CLB"], served["NLB"]), func(text string) bool {
					return strings.HasSuffix(text, "younger")
				}) {
					t.Errorf("the younger one still has the port: %v", served)
				}
				g.watch(time.Minute, "older")
				if served := g.served(); len(served["CLB"])+len(served["NLB"]) != 1 {
					t.Errorf("listeners %v, want one of the older one", served)
				}
				g.stop()
			})
		})
	}
}

// watch lets time pass while the Services are served where their status says.
func (g groupedBoth) watch(d time.Duration, names ...string) {
	g.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) && !g.t.Failed(); {
		time.Sleep(min(time.Second, time.Until(end)))
		if d > 10*time.Minute {
			time.Sleep(5 * time.Second)
		}
		for _, name := range names {
			g.isServed(name)
		}
	}
}

// isServed checks that a Service is served at the address that its status shows.
func (g groupedBoth) isServed(name string) {
	g.t.Helper()
	svc := testkit.Must(g.kube.CoreV1().Services(testkube.Namespace).Get(g.t.Context(), name, metav1.GetOptions{}))(g.t)
	shown := addressOf(svc)
	s := &groupSoak{both: *g.both}
	listeners, _, _ := s.cloud()
	for _, l := range listeners {
		if l.service == name && l.address == shown && l.running && l.servers > 0 {
			return
		}
	}
	g.t.Errorf("%s: %s shows %q, which does not serve it: %+v; conditions %+v", time.Now().Format(time.TimeOnly), name, shown, listeners,
		svc.Status.Conditions)
}
