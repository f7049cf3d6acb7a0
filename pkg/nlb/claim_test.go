package nlb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestTagRemovedCustomNameRestart: somebody removes tags of a load balancer that has a name of its own, and the next process knows nothing
// but the Service. That still shows it, so that no second one is made, and it gets its tags back.
func TestTagRemovedCustomNameRestart(t *testing.T) {
	t.Parallel()
	unlabeled := func(svc *corev1.Service) { delete(svc.Labels, driver.LabelLoadBalancerID) }
	for name, c := range map[string]struct {
		keys []string
		edit []func(*corev1.Service)
	}{
		"owner":                    {keys: []string{mark.TagOwner}},
		"owner and cluster":        {keys: []string{mark.TagOwner, mark.TagCluster}},
		"label, too":               {[]string{mark.TagOwner}, edits(unlabeled)},
		"label, hostname":          {[]string{mark.TagOwner}, edits(with(annotation.Hostname, "web.example.com"), unlabeled)},
		"hostname, no other trace": {[]string{mark.TagOwner, mark.TagCluster}, edits(with(annotation.Hostname, "web.example.com"), unlabeled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), with(annotation.Name, "shop-front"))
				id := w.balancer("web").ID
				if len(c.edit) > 0 {
					w.change("web", c.edit[0])
					w.converge("web")
					w.change("web", c.edit...)
				}
				testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, c.keys))
				w.restart()
				w.converge("web")
				all := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
				if len(all) != 1 || w.balancer("web").ID != id || w.current("web") != id {
					t.Fatalf("%d load balancers, the Service is on %s; want %s alone", len(all), w.current("web"), id)
				}
				w.quiet("web")
				w.remove("web")
				w.converge("web")
				if w.exists(id) || len(w.get("web").Finalizers) > 0 {
					t.Errorf("it is there: %v; finalizers %v", w.exists(id), w.get("web").Finalizers)
				}
			})
		})
	}
}

// TestExistingOneIsMissingOnce: the load balancer that the annotation names is not found once, before and after a restart. The Service goes
// on within seconds, as if it had one of its own.
func TestExistingOneIsMissingOnce(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*world){
		"drift":   func(w *world) { testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift")) },
		"restart": (*world).restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				existing := w.existing("first")
				w.serve(1, testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, existing),
					with(annotation.ForceOverrideListeners, "true"))
				begin(w)
				w.newEvents()
				w.account.Fault(`{"action":"GetLoadBalancerAttribute","times":2,"code":"ResourceNotFound.loadBalancer","status":404}`)
				w.addNodes("n2")
				w.passes("web", 30*time.Second)
				if got, want := w.listeners(existing), "TCP:80 i-n1:30080=100 i-n2:30080=100"; len(got) != 1 || got[0] != want {
					t.Errorf("listeners %v, want %s", got, want)
				}
				for _, event := range w.newEvents() {
					if strings.HasPrefix(event, "Warning") {
						t.Errorf("event %q", event)
					}
				}
			})
		})
	}
}

// TestTakenOverNLBIsKept: somebody takes a load balancer over by removing its tags and giving it another name, and then the Service goes,
// before anything was read, or in another
// process. Only what carries the marks of the Service goes, and a Warning says what stays.
func TestTakenOverNLBIsKept(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*world){"from memory": func(*world) {}, "after a restart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), with(annotation.Name, "shop-front"))
				id := w.balancer("web").ID
				testkit.Check(t,
					w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, []string{mark.TagOwner, mark.TagCluster}))
				w.rename(id, newService("theirs"))
				begin(w)
				w.remove("web")
				w.newEvents()
				w.converge("web")
				if !w.exists(id) || len(w.listeners(id))+len(w.groups("web"))+len(w.get("web").Finalizers) > 0 {
					t.Errorf("it is there: %v; groups %v, finalizers %v", w.exists(id), w.groups("web"), w.get("web").Finalizers)
				}
				if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning LoadBalancerKept NLB "+id) ||
					!strings.Contains(events[0], "delete it") {
					t.Errorf("events %q, want a warning that names the NLB and what to do", events)
				}
			})
		})
	}
}
