package nlb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// owned is an existing load balancer with tags of its owner.
func (w *world) owned(tags ...alicloud.Tag) string {
	w.t.Helper()
	id := w.existing("by-hand")
	testkit.Check(w.t, w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, tags))
	w.calls()
	return id
}

// tags are those of a load balancer.
func (w *world) tags(id string) map[string]string {
	w.t.Helper()
	lb := testkit.Must(w.account.Client.GetNLB(w.t.Context(), id))(w.t)
	tags := map[string]string{}
	for _, tag := range lb.Tags {
		tags[tag.Key] = tag.Value
	}
	return tags
}

// TestTagsOfAnOwnersNLB: tags that an existing NLB had before are neither overwritten nor removed, those that the annotation added go with
// it, and a Service that does not manage the listeners writes none.
func TestTagsOfAnOwnersNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.owned(alicloud.Tag{Key: "owner", Value: "platform"}, alicloud.Tag{Key: "same", Value: "1"})
		is := func(when string, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, w.tags(id)); diff != "" {
				t.Errorf("tags %s (-want +got):\n%s", when, diff)
			}
		}
		w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.AdditionalTags, "owner=evil,same=1,team=a"))
		is("without override", map[string]string{"owner": "platform", "same": "1"})
		mustReport(t, w.newEvents(), "tags owner, team are not set")
		w.change("web", with(annotation.ForceOverrideListeners, "true"))
		w.converge("web")
		is("with override", map[string]string{"owner": "platform", "same": "1", "team": "a"})
		w.restart()
		w.change("web", with(annotation.AdditionalTags, "team=b"))
		w.converge("web")
		is("after a change", map[string]string{"owner": "platform", "same": "1", "team": "b"})
		w.change("web", with(annotation.AdditionalTags, "team=c"), with(annotation.ForceOverrideListeners, "false"))
		w.converge("web")
		is("after a change without override", map[string]string{"owner": "platform", "same": "1", "team": "b"})
		w.remove("web")
		w.converge("web")
		is("after the deletion", map[string]string{"owner": "platform", "same": "1"})
	})
}

// TestRefusedServiceRemovesNoTag: what a Service only asked for was never written, and is not removed from the load balancer of somebody
// else when the Service goes.
func TestRefusedServiceRemovesNoTag(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Policy.LoadBalancerReuse = policy.ReuseOff
		w.restart()
		id := w.owned(alicloud.Tag{Key: "owner", Value: "platform"})
		w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.AdditionalTags, "owner=evil")))
		w.converge("web")
		mustReport(t, w.newEvents(), "LoadBalancerNotReusable")
		w.remove("web")
		w.converge("web")
		if got := writes(w.calls()); len(got) > 0 || w.tags(id)["owner"] != "platform" {
			t.Errorf("writes %v, tags %v", got, w.tags(id))
		}
	})
}

// TestRefusedServiceTakesNoOther: a Service that may not use the load balancer that it asks for does not get the one in its label instead.
func TestRefusedServiceTakesNoOther(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := w.labelGivesNothing(with(annotation.LoadBalancerID, "nlb-none"))
		if events := strings.Join(w.newEvents(), "\n"); strings.Contains(events, id) {
			t.Errorf("events:\n%s", events)
		}
	})
}
