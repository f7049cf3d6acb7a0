package slb

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// lagging makes passes over a Service, which may fail, while the cache of Services stays as it is.
func (w *world) lagging(name string, passes int) {
	w.t.Helper()
	for range passes {
		if _, err := w.Reconcile(w.t.Context(), w.get(name)); err != nil {
			w.t.Log(err)
		}
		time.Sleep(2 * testGoneOver)
	}
}

func asClusterIP(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }

func asLoadBalancer(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer }

// TestLastTwoOfAGroupGoAtOnce: the last Services of a group go at the same time, and the cache still shows the one of them with its
// finalizer that has just left the CLB. The other one deletes the CLB: else nobody would.
func TestLastTwoOfAGroupGoAtOnce(t *testing.T) {
	t.Parallel()
	for what, goes := range map[string]func(*corev1.Service){"deleted": deleteService, "type": asClusterIP} {
		for _, restarts := range []bool{false, true} {
			t.Run(what+map[bool]string{true: ", restart"}[restarts], func(t *testing.T) {
				t.Parallel()
				w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
				w.change("web", goes)
				w.change("shop", goes)
				w.fillGroups()
				w.lagging("web", 3)
				wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}})
				if restarts {
					w.fillGroups() // as that of a new process
					w.restart()
				}
				w.lagging("shop", 3)
				wantOwners(t, w, map[string][]string{})
				for _, name := range []string{"web", "shop"} {
					if held := w.get(name).Finalizers; len(held) > 0 {
						t.Errorf("finalizers %v hold %s", held, name)
					}
				}
			})
		}
	}
	t.Run("the finalizer stays at first", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
		w.change("web", deleteService)
		w.change("shop", deleteService)
		w.fillGroups()
		unwritable := true
		w.kube.PrependReactor("patch", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return unwritable, nil, errors.New("the API server is away")
		})
		w.lagging("web", 3)
		unwritable = false
		w.lagging("shop", 3)
		wantOwners(t, w, map[string][]string{})
		w.lagging("web", 3)
		if held := w.get("web").Finalizers; len(held) > 0 {
			t.Errorf("finalizers %v hold web", held)
		}
	})
}

// TestServiceOfAGroupComesBack: a Service that has left a CLB and asks for it again counts as one that uses it, and so when it goes once
// more.
func TestServiceOfAGroupComesBack(t *testing.T) {
	t.Parallel()
	t.Run("and goes again", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
		for range 2 {
			w.change("web", asClusterIP)
			w.mustPass("web")
			w.change("web", asLoadBalancer)
			w.mustPass("web")
		}
		w.change("web", asClusterIP)
		w.change("shop", deleteService)
		w.fillGroups()
		w.lagging("shop", 3)
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web"}})
		w.lagging("web", 3)
		wantOwners(t, w, map[string][]string{})
	})
	t.Run("by the ID, and goes again", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
		w.change("web", asClusterIP)
		w.mustPass("web")
		w.change("web", func(svc *corev1.Service) {
			asLoadBalancer(svc)
			delete(svc.Annotations, key(annotation.Group))
			annotate(svc, annotation.LoadBalancerID, w.onlyCLB())
			annotate(svc, annotation.ForceOverrideListeners, "true")
		})
		w.mustPass("web")
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
		w.change("web", asClusterIP)
		w.change("shop", deleteService)
		w.fillGroups()
		w.lagging("shop", 3)
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web"}})
	})
}
