package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// guest makes a Service with an https listener, tags and domain extensions on a CLB of its user's, which has a tag and an
// extension of its user's own.
func guest(w *world, extensions, tags string) *corev1.Service {
	w.t.Helper()
	lb := w.makeCLB(alicloud.Tag{Key: "mine", Value: "1"})
	return guestOn("web", lb.ID, extensions, tags)
}

func guestOn(name, id, extensions, tags string) *corev1.Service {
	svc := reusing(name, id, "true", 443)
	annotate(svc, ProtocolPort, "https:443")
	annotate(svc, CertID, testCertificate)
	setOrDelete(svc, DomainExtensions, extensions)
	setOrDelete(svc, AdditionalTags, tags)
	return svc
}

// setOrDelete sets an annotation; empty stands for none.
func setOrDelete(svc *corev1.Service, suffix Suffix, value string) {
	annotate(svc, suffix, value)
	if value == "" {
		delete(svc.Annotations, key(suffix))
	}
}

func (w *world) remembered(name string) string {
	w.t.Helper()
	condition := meta.FindStatusCondition(w.get(name).Status.Conditions, ConditionWritten)
	if condition == nil {
		return ""
	}
	return condition.Message
}

// TestWhatWasWrittenOnACLBOfItsUsers goes when it leaves the annotations, also after a restart before every change; what is
// the user's own stays, and the CLB carries no memory of ours.
func TestWhatWasWrittenOnACLBOfItsUsers(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.put(guest(w, "", ""))
			w.mustPass("web")
			if _, err := w.api.CreateDomainExtension(t.Context(), w.onlyCLB(), 443, alicloud.DomainExtension{Domain: "own.example.com", CertificateID: "cert-1"}); err != nil {
				t.Fatal(err)
			}
			if text := w.remembered("web"); text != "" {
				t.Errorf("a Service that wrote nothing remembers %s", text)
			}
			for _, step := range []struct {
				extensions, tags, scheduler string
				wantDomains                 []string
				wantTags                    map[string]string
				wantScheduler               string
				remembers                   string
			}{
				{"a.example.com:cert-1,b.example.com:cert-1", "a=1,b=2", "wlc", []string{"a.example.com:cert-1", "b.example.com:cert-1"},
					map[string]string{"a": "1", "b": "2"}, "wlc", `"applied":["sc"],"tags":["a","b"],"domains":["a.example.com","b.example.com"]`},
				{"a.example.com:cert-2", "b=3", "wlc", []string{"a.example.com:cert-2"}, map[string]string{"b": "3"}, "wlc",
					`"applied":["sc"],"tags":["b"],"domains":["a.example.com"]`},
				{"", "", "", nil, nil, "rr", ""},
			} {
				w.change("web", func(svc *corev1.Service) {
					setOrDelete(svc, DomainExtensions, step.extensions)
					setOrDelete(svc, AdditionalTags, step.tags)
					setOrDelete(svc, Scheduler, step.scheduler)
				})
				if restarted {
					w.restart()
				}
				w.mustPass("web")
				if diff := cmp.Diff(append([]string{"own.example.com:cert-1"}, step.wantDomains...), w.domains(443)); diff != "" {
					t.Errorf("%q: extensions (-want +got):\n%s", step.extensions, diff)
				}
				want := map[string]string{tagReused: "true", "mine": "1"}
				for key, value := range step.wantTags {
					want[key] = value
				}
				state := w.state()["mine"]
				if diff := cmp.Diff(want, state.Tags); diff != "" {
					t.Errorf("%q: tags (-want +got):\n%s", step.tags, diff)
				}
				if got := state.Listeners["https:443"]["Scheduler"]; got != step.wantScheduler {
					t.Errorf("scheduler %v, want %s", got, step.wantScheduler)
				}
				if text := w.remembered("web"); !strings.Contains(text, step.remembers) || (text == "") != (step.remembers == "") {
					t.Errorf("the Service remembers %s, want %s", text, step.remembers)
				}
				w.calls()
				w.drift("web")
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("%q %q: the next look writes %v", step.extensions, step.tags, writes)
				}
			}
		})
	}
}

// TestTagsThatTwoServicesAskFor stay until the last of them asks for them no more.
func TestTagsThatTwoServicesAskFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	cache := func(name string) {
		t.Helper()
		if err := w.factory.Core().V1().Services().Informer().GetIndexer().Add(w.get(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, port := range map[string]int32{"web": 80, "shop": 81} {
		svc := reusing(name, id, "true", port)
		annotate(svc, AdditionalTags, "team=a,"+name+"=1")
		w.put(svc)
		cache(name)
		w.mustPass(name)
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		want[tagReused] = "true"
		if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
			t.Errorf("tags %s (-want +got):\n%s", when, diff)
		}
	}
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(AdditionalTags)) })
	cache("web")
	w.mustPass("web")
	check("after one Service left them", map[string]string{"team": "a", "shop": "1"})
	w.restart()
	w.change("shop", deleteService)
	w.mustPass("shop")
	check("after the other was deleted", map[string]string{})
}

// TestMemoryOfAnotherCLB removes nothing, nor does one that somebody else wrote.
func TestMemoryOfAnotherCLB(t *testing.T) {
	t.Parallel()
	for _, message := range []string{`{"loadBalancer":"lb-other","tags":["mine"]}`, "mine", ""} {
		w := newWorld(t)
		threeNodes(w)
		svc := guest(w, "", "")
		svc.Status.Conditions = []metav1.Condition{{Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: reasonWritten, Message: message}}
		w.put(svc)
		w.mustPass("web")
		if diff := cmp.Diff(map[string]string{tagReused: "true", "mine": "1"}, w.state()["mine"].Tags); diff != "" {
			t.Errorf("%q: tags (-want +got):\n%s", message, diff)
		}
		if text := w.remembered("web"); text != "" {
			t.Errorf("%q: the Service remembers %s", message, text)
		}
	}
}

// servicePatches counts the writes to Services.
func (w *world) servicePatches() (n int) {
	for _, action := range w.kube.Actions() {
		if action.Matches("patch", "services") || action.Matches("patch", "services/status") {
			n++
		}
	}
	return n
}

// TestMemoryComesBeforeTheWrite: whichever write to the Service fails, loses its answer or is the last thing that a process
// does, nothing that was written to the CLB is forgotten: when the annotations go, so does what they asked for.
func TestMemoryComesBeforeTheWrite(t *testing.T) {
	t.Parallel()
	smooth := newWorld(t)
	threeNodes(smooth)
	smooth.put(guest(smooth, "a.example.com:cert-1", "a=1"))
	smooth.kube.ClearActions()
	smooth.mustPass("web")
	writes := smooth.servicePatches()
	if writes < 3 {
		t.Fatalf("%d writes to the Service, want finalizer, memory and status", writes)
	}
	for _, mishap := range []string{"fails", "loses its answer", "is the last"} {
		for k := range writes {
			t.Run(fmt.Sprintf("write %d %s", k+1, mishap), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				w.put(guest(w, "a.example.com:cert-1", "a=1"))
				patches := 0
				w.kube.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if patches++; patches != k+1 {
						return false, nil, nil
					}
					if mishap == "fails" {
						return true, nil, apierrors.NewInternalError(errDead)
					}
					handled, object, err := clienttesting.ObjectReaction(w.kube.Tracker())(action)
					if err != nil {
						t.Error(err)
					}
					if mishap == "is the last" {
						w.transport.kill()
						return handled, object, errDead
					}
					return true, nil, apierrors.NewInternalError(errDead)
				})
				if err := w.pass("web"); err == nil {
					t.Error("the pass hides what went wrong")
				}
				w.restart()
				w.change("web", func(svc *corev1.Service) {
					setOrDelete(svc, DomainExtensions, "")
					setOrDelete(svc, AdditionalTags, "")
				})
				w.converge("web")
				state := w.state()["mine"]
				if diff := cmp.Diff(map[string]string{tagReused: "true", "mine": "1"}, state.Tags); diff != "" {
					t.Errorf("tags (-want +got):\n%s", diff)
				}
				if domains := w.domains(443); len(domains) != 0 {
					t.Errorf("domains %v are left over", domains)
				}
				if text := w.remembered("web"); text != "" {
					t.Errorf("the Service still remembers %s", text)
				}
			})
		}
	}
}

// TestTearDownOnACLBOfItsUsers takes away the tags that were written for the Service and no other ones.
func TestTearDownOnACLBOfItsUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(guest(w, "a.example.com:cert-1", "a=1"))
	w.mustPass("web")
	w.restart()
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	w.mustPass("web")
	state := w.state()["mine"]
	if diff := cmp.Diff(map[string]string{tagReused: "true", "mine": "1"}, state.Tags); diff != "" || len(state.Listeners)+len(state.Groups) != 0 {
		t.Errorf("listeners %v, groups %v, tags (-want +got):\n%s", state.Listeners, state.Groups, diff)
	}
	if conditions := w.get("web").Status.Conditions; len(conditions) != 0 {
		t.Errorf("conditions %v are left on the Service", conditions)
	}
}

// TestAdapterRemembersToo: linked into a stock manager, what was written goes as well, also after a restart.
func TestAdapterRemembersToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(guest(w, "", "a=1,b=2"))
	ensure := func() {
		t.Helper()
		if _, err := NewLoadBalancer(w.Reconciler).EnsureLoadBalancer(t.Context(), "", w.get("web"), nil); err != nil {
			t.Fatal(err)
		}
		w.restart()
	}
	ensure()
	w.change("web", func(svc *corev1.Service) { setOrDelete(svc, AdditionalTags, "b=2") })
	ensure()
	if diff := cmp.Diff(map[string]string{tagReused: "true", "mine": "1", "b": "2"}, w.state()["mine"].Tags); diff != "" || !strings.Contains(w.remembered("web"), `"tags":["b"]`) {
		t.Errorf("the Service remembers %s, tags (-want +got):\n%s", w.remembered("web"), diff)
	}
	if err := NewLoadBalancer(w.Reconciler).EnsureLoadBalancerDeleted(t.Context(), "", w.get("web")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{tagReused: "true", "mine": "1"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags after the deletion (-want +got):\n%s", diff)
	}
}
