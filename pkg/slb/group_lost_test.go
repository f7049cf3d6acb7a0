package slb

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestLostCreationIsLeft: the answer to the creation of a CLB of the Service's own is lost, or the process ends there. At once, the Service
// is to be elsewhere, or is deleted, while no search shows the CLB yet. It does not stay in the cloud.
func TestLostCreationIsLeft(t *testing.T) {
	t.Parallel()
	existing := func(svc *corev1.Service, id string) { svc.Annotations = reusing("web", id, "true", 80).Annotations }
	redirects := map[string]func(svc *corev1.Service, mine string){
		"back":     func(svc *corev1.Service, _ string) { annotate(svc, annotation.Group, "edge") },
		"other":    func(svc *corev1.Service, _ string) { annotate(svc, annotation.Group, "other") },
		"new":      func(svc *corev1.Service, _ string) { annotate(svc, annotation.Group, "third") },
		"existing": existing,
		"deleted":  func(svc *corev1.Service, _ string) { deleteService(svc) },
	}
	// mistakes are what the author of the Service corrects a minute later.
	mistakes := map[string]func(w *world) string{
		"missing": func(*world) string { return "lb-nowhere" },
		"refused": func(w *world) string { w.putAll(testService("other", 83)); return w.balancer("a0f5e8a1cother").ID },
	}
	for mistake := range mistakes {
		redirects[mistake] = existing
	}
	for where, redirect := range redirects {
		for _, ends := range []bool{false, true} {
			for _, isNew := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, process ends %v, new %v", where, ends, isNew), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						threeNodes(w)
						places := []string{w.makeCLB().ID}
						if mistake, ok := mistakes[where]; ok {
							places = []string{mistake(w), places[0]}
						}
						w.putAll(grouped("shop", "edge", 81), grouped("blog", "other", 82))
						if web := born(grouped("web", "edge", 80), 5); isNew {
							delete(web.Annotations, key(annotation.Group))
							w.put(web)
						} else {
							w.putAll(web)
							w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) })
						}
						w.emulator.Change(func(s *emulator.Settings) { s.ReplicaLag = cloud.Duration(4 * time.Second) })
						time.Sleep(time.Minute)
						if ends {
							w.transport.limit, w.transport.writes = 1, 0
						} else {
							w.fault(map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1})
						}
						w.fillGroups()
						if _, err := w.Reconcile(t.Context(), w.get("web")); err == nil {
							t.Fatal("the creation was answered")
						}
						if ends {
							w.restart()
						}
						for _, at := range places {
							w.change("web", func(svc *corev1.Service) { redirect(svc, at) })
							for range 12 {
								w.fillGroups()
								_, _ = w.Reconcile(t.Context(), w.get("web"))
								time.Sleep(5 * time.Second)
							}
						}
						if own, left := w.ownersOf()["a0f5e8a1cweb"]; left &&
							(where != "existing" && len(places) == 1 || !slices.Equal(own, []string{"tcp:80 web"})) {
							t.Errorf("the CLB whose creation was not answered stays; CLBs %v, Service %v %v", w.ownersOf(), w.get("web").Finalizers,
								w.get("web").Status.Conditions)
						}
					})
				})
			}
		}
	}
}
