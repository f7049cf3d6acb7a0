package slb

import (
	"fmt"
	"maps"
	"slices"
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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// onExistingCLB makes a Service with an https listener, tags and domain extensions on an existing CLB, which has a tag of its owner.
func onExistingCLB(w *world, extensions, tags string) *corev1.Service {
	w.t.Helper()
	lb := w.makeCLB(alicloud.Tag{Key: "mine", Value: "1"})
	return onExisting("web", lb.ID, extensions, tags)
}

func onExisting(name, id, extensions, tags string) *corev1.Service {
	svc := reusing(name, id, "true", 443)
	annotate(svc, annotation.ProtocolPort, "https:443")
	annotate(svc, annotation.CertID, testCertificate)
	setOrDelete(svc, annotation.DomainExtensions, extensions)
	setOrDelete(svc, annotation.AdditionalTags, tags)
	return svc
}

// setOrDelete sets an annotation; empty stands for none.
func setOrDelete(svc *corev1.Service, suffix annotation.Suffix, value string) {
	annotate(svc, suffix, value)
	if value == "" {
		delete(svc.Annotations, key(suffix))
	}
}

// recorded returns the Record that the Service holds, as text.
func (w *world) recorded(name string) string {
	w.t.Helper()
	condition := meta.FindStatusCondition(w.get(name).Status.Conditions, driver.ConditionWritten)
	if condition == nil {
		return ""
	}
	return condition.Message
}

// TestRecordOnAnExistingCLB: what was applied goes when it leaves the annotations, also after a restart before every change;
// what the owner of the CLB set stays, and the CLB carries no tag of ours.
func TestRecordOnAnExistingCLB(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			w.put(onExistingCLB(w, "", ""))
			w.mustPass("web")
			if _, err := w.api.CreateDomainExtension(t.Context(), w.onlyCLB(), 443,
				alicloud.DomainExtension{Domain: "own.example.com", CertificateID: "cert-1"}); err != nil {
				t.Fatal(err)
			}
			if text := w.recorded("web"); writtenOnCLB(text) {
				t.Errorf("a Service for which nothing was written records %s", text)
			}
			for _, step := range []struct {
				extensions, tags, scheduler string
				wantDomains                 []string
				wantTags                    map[string]string
				wantScheduler               string
				recorded                    string
			}{
				{"a.example.com:cert-1,b.example.com:cert-1", "a=1,b=2", "wlc", []string{"a.example.com:cert-1", "b.example.com:cert-1"},
					map[string]string{"a": "1", "b": "2"}, "wlc",
					`"annotations":["loadbalancer-scheduler"],"tags":["a","b"],"domains":["a.example.com","b.example.com"]`},
				{"a.example.com:cert-2", "b=3", "wlc", []string{"a.example.com:cert-2"}, map[string]string{"b": "3"}, "wlc",
					`"annotations":["loadbalancer-scheduler"],"tags":["b"],"domains":["a.example.com"]`},
				{"", "", "", nil, nil, "rr", ""},
			} {
				w.change("web", func(svc *corev1.Service) {
					setOrDelete(svc, annotation.DomainExtensions, step.extensions)
					setOrDelete(svc, annotation.AdditionalTags, step.tags)
					setOrDelete(svc, annotation.Scheduler, step.scheduler)
				})
				if restarted {
					w.restart()
				}
				w.mustPass("web")
				if diff := cmp.Diff(append([]string{"own.example.com:cert-1"}, step.wantDomains...), w.domains(443)); diff != "" {
					t.Errorf("%q: extensions (-want +got):\n%s", step.extensions, diff)
				}
				want := map[string]string{mark.TagReused: "true", "mine": "1"}
				maps.Copy(want, step.wantTags)
				state := w.state()["mine"]
				if diff := cmp.Diff(want, state.Tags); diff != "" {
					t.Errorf("%q: tags (-want +got):\n%s", step.tags, diff)
				}
				if got := state.Listeners["https:443"]["Scheduler"]; got != step.wantScheduler {
					t.Errorf("scheduler %v, want %s", got, step.wantScheduler)
				}
				if text := w.recorded("web"); !strings.Contains(text, step.recorded) || writtenOnCLB(text) != (step.recorded != "") {
					t.Errorf("the Service records %s, want %s", text, step.recorded)
				}
				w.calls()
				w.drift("web")
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("%q %q: the next pass writes %v", step.extensions, step.tags, writes)
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
		annotate(svc, annotation.AdditionalTags, "team=a,"+name+"=1")
		w.put(svc)
		cache(name)
		w.mustPass(name)
		cache(name)
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		want[mark.TagReused] = "true"
		if diff := cmp.Diff(want, w.state()["mine"].Tags); diff != "" {
			t.Errorf("tags %s (-want +got):\n%s", when, diff)
		}
	}
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.AdditionalTags)) })
	cache("web")
	w.mustPass("web")
	check("after one Service left them", map[string]string{"team": "a", "shop": "1"})
	w.restart()
	w.change("shop", deleteService)
	w.mustPass("shop")
	check("after the other was deleted", map[string]string{})
}

// TestRecordOfAnotherCLB removes nothing, nor does a text that is no Record.
func TestRecordOfAnotherCLB(t *testing.T) {
	t.Parallel()
	for _, message := range []string{`{"loadBalancer":"lb-other","tags":["mine"],"uid":"UID"}`, "mine", ""} {
		w := newWorld(t)
		threeNodes(w)
		svc := onExistingCLB(w, "", "")
		message = strings.ReplaceAll(message, "UID", string(svc.UID))
		svc.Status.Conditions = []metav1.Condition{{Type: driver.ConditionWritten, Status: metav1.ConditionTrue, Reason: driver.ReasonWritten,
			Message: message}}
		w.put(svc)
		w.mustPass("web")
		if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "mine": "1"}, w.state()["mine"].Tags); diff != "" {
			t.Errorf("%q: tags (-want +got):\n%s", message, diff)
		}
		if text := w.recorded("web"); strings.Contains(text, "tags") || !strings.Contains(text, `"existing":true`) {
			t.Errorf("%q: the Service records %s", message, text)
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

// TestIntentIsRecordedBeforeTheWrite: whichever write to the Service fails, loses its answer or is the last thing that a process
// does, the Record has everything that was written to the CLB: when the annotations go, so does what they asked for.
func TestIntentIsRecordedBeforeTheWrite(t *testing.T) {
	t.Parallel()
	smooth := newWorld(t)
	threeNodes(smooth)
	smooth.put(onExistingCLB(smooth, "a.example.com:cert-1", "a=1"))
	smooth.kube.ClearActions()
	smooth.mustPass("web")
	writes := smooth.servicePatches()
	if writes != 3 {
		t.Fatalf("%d writes to the Service, want one of the finalizer, one of the intent and one of the status", writes)
	}
	for _, mishap := range []string{"fails", "loses its answer", "is the last"} {
		for k := range writes {
			t.Run(fmt.Sprintf("write %d %s", k+1, mishap), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				w.put(onExistingCLB(w, "a.example.com:cert-1", "a=1"))
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
					setOrDelete(svc, annotation.DomainExtensions, "")
					setOrDelete(svc, annotation.AdditionalTags, "")
				})
				w.converge("web")
				state := w.state()["mine"]
				if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "mine": "1"}, state.Tags); diff != "" {
					t.Errorf("tags (-want +got):\n%s", diff)
				}
				if domains := w.domains(443); len(domains) != 0 {
					t.Errorf("domains %v are left over", domains)
				}
				if text := w.recorded("web"); writtenOnCLB(text) {
					t.Errorf("the Service still records %s", text)
				}
			})
		}
	}
}

// writtenOnCLB reports whether a Record says more than which CLB the Service uses.
func writtenOnCLB(record string) bool {
	return slices.ContainsFunc([]string{`"annotations"`, `"tags"`, `"domains"`}, func(field string) bool {
		return strings.Contains(record, field)
	})
}

// TestTearDownOnAnExistingCLB removes the tags that were written for the Service and no others.
func TestTearDownOnAnExistingCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(onExistingCLB(w, "a.example.com:cert-1", "a=1"))
	w.mustPass("web")
	w.restart()
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	w.mustPass("web")
	state := w.state()["mine"]
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "mine": "1"}, state.Tags); diff != "" ||
		len(state.Listeners)+len(state.Groups) != 0 {
		t.Errorf("listeners %v, groups %v, tags (-want +got):\n%s", state.Listeners, state.Groups, diff)
	}
	if conditions := w.get("web").Status.Conditions; len(conditions) != 0 {
		t.Errorf("conditions %v are left on the Service", conditions)
	}
}

// TestAdapterRecordsToo: linked into a stock cloud controller manager, what was applied goes as well, also after a restart.
func TestAdapterRecordsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(onExistingCLB(w, "", "a=1,b=2"))
	w.startInformers()
	ensure := func() {
		t.Helper()
		if _, err := service.NewLoadBalancer(w.Reconciler).EnsureLoadBalancer(t.Context(), "", w.get("web"), nil); err != nil {
			t.Fatal(err)
		}
		w.restart()
	}
	ensure()
	w.change("web", func(svc *corev1.Service) { setOrDelete(svc, annotation.AdditionalTags, "b=2") })
	ensure()
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "mine": "1", "b": "2"}, w.state()["mine"].Tags); diff != "" ||
		!strings.Contains(w.recorded("web"), `"tags":["b"]`) {
		t.Errorf("the Service records %s, tags (-want +got):\n%s", w.recorded("web"), diff)
	}
	if err := service.NewLoadBalancer(w.Reconciler).EnsureLoadBalancerDeleted(t.Context(), "", w.get("web")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true", "mine": "1"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags after the deletion (-want +got):\n%s", diff)
	}
}
