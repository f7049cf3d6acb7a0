package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// inOtherCluster makes an NLB that a group of another cluster shares, on which the Service web of that has a listener.
func (w *world) inOtherCluster() (id string) {
	w.t.Helper()
	id = w.existing("mine")
	ctx, api := w.t.Context(), w.account.Client
	testkit.Check(w.t,
		api.TagNLB(ctx, alicloud.NLBTagLoadBalancer, []string{id}, []alicloud.Tag{{Key: mark.TagGroup, Value: "c2/default/edge"}}))
	vpcID := testkit.Must(api.GetNLB(ctx, id))(w.t).VPCID
	group, _, err := api.CreateNLBGroup(ctx, alicloud.NLBGroup{Name: "theirs", VPCID: vpcID, Protocol: alicloud.NLBTCP}, "theirs")
	testkit.Check(w.t, err)
	w.later(5 * settle)
	listener := alicloud.NLBListener{LoadBalancerID: id, Port: 80, Protocol: alicloud.NLBTCP}
	listener.ServerGroupID, listener.Description = &group, new("k8s.80.TCP.web.default.c2")
	_, _, err = api.CreateNLBListener(ctx, listener, "theirs")
	testkit.Check(w.t, err)
	w.later(5 * settle)
	return id
}

// TestLabelOfAGroupInAnotherCluster: a backup of one cluster is restored in another one, with the label of an NLB that a group of the first
// shares. Nothing there changes, also if the Service can get no NLB.
func TestLabelOfAGroupInAnotherCluster(t *testing.T) {
	t.Parallel()
	for _, isGrouped := range []bool{false, true} {
		for _, refused := range []bool{false, true} {
			t.Run(fmt.Sprintf("group %v, refused %v", isGrouped, refused), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.addNodes("n1", "n2")
					id := w.inOtherCluster()
					web := newService("web", testkit.TCP(80), born(1))
					if isGrouped {
						web = grouped("web", "edge", 1, testkit.TCP(80))
					}
					web.Labels = map[string]string{driver.LabelLoadBalancerID: id}
					if refused {
						w.account.Fault(`{"product":"nlb","action":"CreateLoadBalancer","times":0,"code":"QuotaExceeded.LoadBalancersNum","status":400}`)
					}
					w.put(web)
					w.tries(8, "web")
					want := map[string][]string{"mine": {"tcp:80 web"}}
					switch {
					case refused:
					case isGrouped:
						want[edgeNLB] = []string{"tcp:80 web"}
					default:
						want[ownNLB] = []string{"tcp:80 web"}
					}
					w.wantOwners(want)
					if shown := w.hostname("web"); shown == testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t).DNSName {
						t.Errorf("the status shows %s, which is the other cluster's", shown)
					}
				})
			})
		}
	}
}

// TestRecordOfAGroupInAnotherCluster: a backup of one cluster is restored in another one, with the status that says on which NLB of a group
// the Service is, or was. Nothing there changes, also if the Service is deleted.
func TestRecordOfAGroupInAnotherCluster(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]string{
		"in the group":                        `{"loadBalancer":"ID","group":"c2/default/edge","uid":"theirs"}`,
		"leaves by mark":                      `{"loadBalancer":"","leaving":["c2/default/edge"],"uid":"theirs"}`,
		"in the group, of no known Service":   `{"loadBalancer":"ID","group":"c2/default/edge"}`,
		"leaves by mark, of no known Service": `{"loadBalancer":"","leaving":["c2/default/edge"]}`,
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted %v", name, deleted), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.addNodes("n1", "n2")
					id := w.inOtherCluster()
					web := newService("web", testkit.TCP(80), born(1))
					web.Labels, web.Finalizers = map[string]string{driver.LabelLoadBalancerID: id}, []string{Finalizer}
					web.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: testkit.Must(w.account.Client.GetNLB(t.Context(),
						id))(t).DNSName}}
					testkit.SetCondition(web, driver.ConditionWritten, driver.ReasonWritten, strings.ReplaceAll(record, "ID", id))
					w.put(web)
					if deleted {
						w.remove("web")
					}
					w.tries(8, "web")
					if owners := w.ownersOf(); !slices.Equal(owners["mine"], []string{"tcp:80 web"}) || !w.exists(id) {
						t.Errorf("listeners %v of the other cluster", owners["mine"])
					}
				})
			})
		}
	}
}
