package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// secured makes a Service with an https listener that has domain extensions; empty stands for no annotation.
func secured(extensions string) *corev1.Service {
	svc := testService("web", 443)
	annotate(svc, annotation.ProtocolPort, "https:443")
	annotate(svc, annotation.CertID, testCertificate)
	if extensions != "" {
		annotate(svc, annotation.DomainExtensions, extensions)
	}
	return svc
}

// domains returns the extensions of the https listener as domain:certificate.
func (w *world) domains(port int) []string {
	w.t.Helper()
	found, err := w.api.DescribeDomainExtensions(w.t.Context(), w.get("web").Labels[driver.LabelLoadBalancerID], port)
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	texts := []string{}
	for _, extension := range found {
		texts = append(texts, extension.Domain+":"+extension.CertificateID)
	}
	return texts
}

// TestDomainExtensions: extensions follow the annotation, one of the user's own stays, and what left the annotation goes
// also after a restart.
func TestDomainExtensions(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := settled(t, secured(""))
			if _, err := w.api.CreateDomainExtension(t.Context(), w.onlyCLB(), 443,
				alicloud.DomainExtension{Domain: "own.example.com", CertificateID: "cert-1"}); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				value  string
				writes []string
				want   []string
			}{
				{"b.example.com:cert-1,A.example.com:cert-1", []string{"CreateDomainExtension", "CreateDomainExtension"},
					[]string{"own.example.com:cert-1", "a.example.com:cert-1", "b.example.com:cert-1"}},
				{"a.example.com:cert-2,b.example.com:cert-1", []string{"SetDomainExtensionAttribute"},
					[]string{"own.example.com:cert-1", "a.example.com:cert-2", "b.example.com:cert-1"}},
				{"*.example.com:cert-1", []string{"DeleteDomainExtension", "DeleteDomainExtension", "CreateDomainExtension"},
					[]string{"own.example.com:cert-1", "*.example.com:cert-1"}},
				{"", []string{"DeleteDomainExtension"}, []string{"own.example.com:cert-1"}},
			} {
				w.change("web", func(svc *corev1.Service) {
					annotate(svc, annotation.DomainExtensions, step.value)
					if step.value == "" {
						delete(svc.Annotations, key(annotation.DomainExtensions))
					}
				})
				if restarted {
					w.restart()
				}
				w.calls()
				w.mustPass("web")
				if diff := cmp.Diff(step.writes, writesOf(w.calls())); diff != "" {
					t.Errorf("%q: writes (-want +got):\n%s", step.value, diff)
				}
				if diff := cmp.Diff(step.want, w.domains(443)); diff != "" {
					t.Errorf("%q: extensions (-want +got):\n%s", step.value, diff)
				}
				w.drift("web")
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("%q: the next pass writes %v", step.value, writes)
				}
			}
		})
	}
}

// TestDomainExtensionsCostNothingElsewhere: only Services that have or had extensions read them.
func TestDomainExtensionsCostNothingElsewhere(t *testing.T) {
	t.Parallel()
	w := settled(t, secured(""))
	w.drift("web")
	w.mustPass("web")
	if calls := strings.Join(w.calls(), " "); strings.Contains(calls, "DomainExtension") {
		t.Errorf("calls = %s, want none about extensions", calls)
	}
	w = settled(t, secured("a.example.com:cert-1"))
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("an unchanged Service costs %v", calls)
	}
}

// TestDomainExtensionsOfAnAdoptedCLB: those that the official CCM made are taken over without a write; one that
// leaves the annotation later goes.
func TestDomainExtensionsOfAnAdoptedCLB(t *testing.T) {
	t.Parallel()
	w := settled(t, secured("a.example.com:cert-1,b.example.com:cert-1"))
	w.change("web", func(svc *corev1.Service) { svc.Status.Conditions = nil })
	w.restart()
	w.calls()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("adoption writes %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.DomainExtensions, "a.example.com:cert-1") })
	w.converge("web")
	if diff := cmp.Diff([]string{"a.example.com:cert-1"}, w.domains(443)); diff != "" {
		t.Errorf("extensions (-want +got):\n%s", diff)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id, reason string
		listeners  int
	}{
		{"cert-1", "", 1},
		{"cert-none", problem.ReasonInvalidAnnotation, 0},
		{"cert-expired", problem.ReasonInvalidAnnotation, 0},
		{"cert-expiring", problem.ReasonCertificateExpiring, 1},
	} {
		t.Run(test.id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := secured("")
			annotate(svc, annotation.CertID, test.id)
			w.put(svc)
			w.mustPass("web")
			w.mustPass("web")
			var warnings []string
			for _, event := range w.newEvents() {
				if strings.HasPrefix(event, "Warning") {
					warnings = append(warnings, event)
				}
			}
			switch {
			case test.reason == "" && len(warnings) > 0:
				t.Errorf("events %q", warnings)
			case test.reason != "" &&
				(len(warnings) != 1 || !strings.HasPrefix(warnings[0], "Warning "+test.reason) ||
					!strings.Contains(warnings[0], fmt.Sprintf("%s: certificate %q ", annotation.CertID, test.id))):
				t.Errorf("events %q, want one %s that names the certificate and its annotation", warnings, test.reason)
			}
			listeners := 0
			for _, lb := range w.state() {
				listeners += len(lb.Listeners)
			}
			if listeners != test.listeners {
				t.Errorf("%d listeners, want %d", listeners, test.listeners)
			}
		})
	}
}

// TestMissingAccessListIsTheAuthorsMatter: the event and the condition say which annotation names a list that does not exist, and once the
// list is there, the next attempt serves the Service.
func TestMissingAccessListIsTheAuthorsMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80, 81)
	annotate(svc, annotation.ACLStatus, "on")
	annotate(svc, annotation.ACLType, "white")
	annotate(svc, annotation.ACLID, "acl-none")
	w.put(svc)
	if err := w.pass("web"); err == nil {
		t.Fatal("the cloud accepts a list that does not exist")
	}
	want := fmt.Sprintf("%s: %q names a list that does not exist", annotation.ACLID, "acl-none")
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonInvalidAnnotation) ||
		!strings.Contains(events[0], want) {
		t.Errorf("events %q, want one %s with %q", events, problem.ReasonInvalidAnnotation, want)
	}
	if condition := meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionSynced); condition == nil ||
		condition.Reason != problem.ReasonInvalidAnnotation {
		t.Errorf("condition %+v, want the reason %s", condition, problem.ReasonInvalidAnnotation)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ACLID, testACL) })
	w.converge("web")
	if got := len(w.listenerKeys()); got != 2 {
		t.Errorf("%d listeners, want 2", got)
	}
}

// TestUnreadableCertificateIsNotExpired: without the permission to read certificates everything works as before.
func TestUnreadableCertificateIsNotExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.fault(map[string]any{"action": "DescribeServerCertificates", "code": "Forbidden.RAM", "status": 403})
	w.put(secured(""))
	w.mustPass("web")
	if n := len(w.state()["a0f5e8a1cweb"].Listeners); n != 1 {
		t.Errorf("%d listeners, want 1", n)
	}
}

// TestExpiredCertificateThatIsServed: a listener keeps what it has; one event says so.
func TestExpiredCertificateThatIsServed(t *testing.T) {
	t.Parallel()
	w := settled(t, secured(""))
	svc := w.get("web")
	listener := alicloud.Listener{
		ListenerKey: alicloud.ListenerKey{Port: 443, Protocol: alicloud.ProtocolHTTPS},
		Attributes:  alicloud.Attributes{"ServerCertificateId": "cert-expired"},
	}
	if err := w.api.SetListener(t.Context(), w.onlyCLB(), listener); err != nil {
		t.Fatal(err)
	}
	annotate(svc, annotation.CertID, "cert-expired")
	w.change("web", func(s *corev1.Service) { s.Annotations = svc.Annotations })
	w.drift("web")
	w.addNode("d")
	w.newEvents()
	w.mustPass("web")
	w.mustPass("web")
	events := w.newEvents()
	if len(events) != 2 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonCertificateExpired) {
		t.Errorf("events %q, want one %s and one of the new backend server", events, problem.ReasonCertificateExpired)
	}
}

func TestParseExtensions(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"a.example.com:cert-1":                        true,
		"*.example.com:123_abc, b.example.com:cert-1": true,
		"example.com":                                 false,
		"a.example.com:":                              false,
		":cert-1":                                     false,
		"*:cert-1":                                    false,
		"a.example.com:cert-1,A.example.com:cert-2": false,
		"a.*.com:cert-1":                        false,
		strings.Repeat("a", 80) + ".com:cert-1": false,
		"":                                      false,
	} {
		if _, err := annotation.ParseExtensions(text); (err == nil) != ok {
			t.Errorf("%q: %v, want accepted %v", text, err, ok)
		}
	}
	var many []string
	for i := range annotation.MaxExtensions + 1 {
		many = append(many, fmt.Sprintf("d%d.example.com:cert-1", i))
	}
	if _, err := annotation.ParseExtensions(strings.Join(many, ",")); err == nil {
		t.Error("more domains than any quota are accepted")
	}
}
