package nlb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// shown is everything of a Service in the cloud by which the official CCM finds it, and that it compares with what it wants. What the cloud
// chooses, such as ids and addresses, is left out.
type shown struct {
	LoadBalancer alicloud.NLB
	Groups       []shownGroup
	Listeners    []shownListener
	Access       alicloud.SecurityGroup
	Rules        []alicloud.SecurityRule
}

type shownGroup struct {
	alicloud.NLBGroup
	Servers []alicloud.NLBServer
}

type shownListener struct {
	alicloud.NLBListener
	Group string
}

// shows reads it.
func (w *world) shows(id string) shown {
	w.t.Helper()
	ctx, c := w.t.Context(), w.account.Client
	w.later(5 * settle)
	s := shown{LoadBalancer: testkit.Must(c.GetNLB(ctx, id))(w.t)}
	lb := &s.LoadBalancer
	lb.ID, lb.DNSName, lb.SecurityGroups = "", "", nil
	for i := range lb.Zones {
		lb.Zones[i] = alicloud.NLBZone{ZoneID: lb.Zones[i].ZoneID, VSwitchID: lb.Zones[i].VSwitchID}
	}
	byKey(lb.Tags)
	lb.Tags = slices.DeleteFunc(lb.Tags, func(t alicloud.Tag) bool { return t.Key == "human" })
	names := map[string]string{}
	for _, group := range w.groups("web") {
		servers := testkit.Must(c.ListNLBServers(ctx, group.ID))(w.t)
		slices.SortFunc(servers, func(a, b alicloud.NLBServer) int { return strings.Compare(a.IP, b.IP) })
		for i := range servers {
			if servers[i].Type == alicloud.NLBServerENI {
				servers[i].ID = ""
			}
		}
		names[group.ID] = group.Name
		group.ID, group.LoadBalancers = "", nil
		byKey(group.Tags)
		if group.Protocol == alicloud.NLBUDP {
			// Off, where the API would check by TCP; the official CCM does not compare it without an annotation.
			group.HealthCheck = alicloud.NLBHealthCheck{}
		}
		s.Groups = append(s.Groups, shownGroup{group, servers})
	}
	slices.SortFunc(s.Groups, func(a, b shownGroup) int { return strings.Compare(a.Name, b.Name) })
	for _, listener := range testkit.Must(c.ListNLBListeners(ctx, []string{id}))(w.t) {
		group := names[*listener.ServerGroupID]
		listener.ID, listener.LoadBalancerID, listener.ServerGroupID = "", "", nil
		s.Listeners = append(s.Listeners, shownListener{listener, group})
	}
	slices.SortFunc(s.Listeners, func(a, b shownListener) int { return strings.Compare(*a.Description, *b.Description) })
	for _, group := range testkit.Must(c.DescribeSecurityGroups(ctx, *w.owner("web")))(w.t) {
		s.Rules = testkit.Must(c.DescribeSecurityGroup(ctx, group.ID))(w.t).Rules
		slices.SortFunc(s.Rules, func(a, b alicloud.SecurityRule) int { return strings.Compare(a.CIDR, b.CIDR) })
		for i := range s.Rules {
			s.Rules[i].ID = ""
		}
		group.ID = ""
		byKey(group.Tags)
		s.Access = group
	}
	return s
}

func byKey(tags []alicloud.Tag) {
	slices.SortFunc(tags, func(a, b alicloud.Tag) int { return strings.Compare(a.Key, b.Key) })
}

// TestBackToTheOfficialCCM: what this engine makes for a Service is what the official CCM would have made, name for name, tag for tag and
// setting for setting, so that it finds everything and writes nothing. The label that would make it skip a Service is not there.
func TestBackToTheOfficialCCM(t *testing.T) {
	t.Parallel()
	for _, kind := range adoptedKinds() {
		if kind.either {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var want, got shown
			inWorld(t, func(t *testing.T, w *world) {
				id := kind.begin(w)
				made := kind.official(t, w)
				made.make(w, id)
				if id == "" {
					id = w.balancer("web").ID
				}
				want = w.shows(id)
			})
			inWorld(t, func(t *testing.T, w *world) {
				id := kind.begin(w)
				kind.official(t, w) // what it is made for
				w.put(newService("web", kind.changes(id)...))
				w.converge("web")
				svc := w.get("web")
				if id == "" {
					id = w.balancer("web").ID
				}
				got = w.shows(id)
				if svc.Labels[driver.LabelLoadBalancerID] != id || !slices.Contains(svc.Finalizers, Finalizer) ||
					svc.Labels["service.beta.kubernetes.io/hash"] != "" {
					t.Errorf("labels %v, finalizers %v", svc.Labels, svc.Finalizers)
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in the cloud (-official +ours):\n%s", diff)
			}
		})
	}
}

// begin makes the nodes, and the existing load balancer where there is to be one.
func (k adopted) begin(w *world) (id string) {
	w.t.Helper()
	w.addNodes("n1", "n2")
	if k.reused {
		return w.existing("by-hand")
	}
	return ""
}
