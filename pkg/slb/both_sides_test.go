package slb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// onBothSides runs a story in a cloud where a fact holds, and in one where it does not.
func onBothSides(t *testing.T, fact string, svc *corev1.Service, story func(*world)) {
	t.Helper()
	for name, flipped := range map[string][]string{"holds": nil, "is false": {fact}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, svc.DeepCopy())
			w.emulator.Change(func(s *emulator.Settings) { s.Flipped = flipped })
			story(w)
		})
	}
}

// settles fails unless the Service converges, and the next pass writes nothing.
func (w *world) settles(name string) {
	w.t.Helper()
	w.converge(name)
	w.wantRest(name)
}

// listID is the id of the access list of the Service.
func (w *world) listID() string {
	w.t.Helper()
	var answer struct {
		Acls struct{ Acl []struct{ AclId string } }
	} //nolint:revive // names on the wire
	w.raw(api.VersionSLB, "DescribeAccessControlLists", map[string]string{"AclName": testListName}, &answer)
	if len(answer.Acls.Acl) != 1 {
		w.t.Fatalf("%d access lists, want one", len(answer.Acls.Acl))
	}
	return answer.Acls.Acl[0].AclId
}

// TestExtensionRemovedByHand: whatever the cloud answers to the removal of an extension that somebody has removed, the Service settles.
func TestExtensionRemovedByHand(t *testing.T) {
	t.Parallel()
	onBothSides(t, "slb.InvalidParameter.DomainExtensionId", secured("a.example.com:cert-1"), func(w *world) {
		found, err := w.api.DescribeDomainExtensions(w.t.Context(), w.onlyCLB(), 443)
		if err != nil || len(found) != 1 {
			w.t.Fatal(found, err)
		}
		w.must(w.api.DeleteDomainExtension(w.t.Context(), found[0].ID))
		w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.DomainExtensions)) })
		w.settles("web")
		if got := w.domains(443); len(got) != 0 {
			w.t.Errorf("extensions %v, want none", got)
		}
	})
}

// TestExtensionAddedByHand: whatever the cloud answers to a second extension for a domain, the Service gets its certificate.
func TestExtensionAddedByHand(t *testing.T) {
	t.Parallel()
	onBothSides(t, "slb.DomainExtensionAlreadyExists", secured("b.example.com:cert-1"), func(w *world) {
		_, err := w.api.CreateDomainExtension(w.t.Context(), w.onlyCLB(), 443,
			alicloud.DomainExtension{Domain: "a.example.com", CertificateID: "cert-2"})
		w.must(err)
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.DomainExtensions, "a.example.com:cert-1,b.example.com:cert-1")
		})
		w.settles("web")
		if diff := cmp.Diff([]string{"b.example.com:cert-1", "a.example.com:cert-1"}, w.domains(443)); diff != "" {
			w.t.Errorf("extensions (-want +got):\n%s", diff)
		}
	})
}

// TestRangeAddedByHand: whatever the cloud answers to an entry that the access list has, the Service gets its ranges.
func TestRangeAddedByHand(t *testing.T) {
	t.Parallel()
	onBothSides(t, "slb.InvalidParam.AclEntryExists", restricted("192.0.2.0/24"), func(w *world) {
		w.must(w.api.AddAccessListEntries(w.t.Context(), w.listID(), []string{"203.0.113.0/24"}))
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24", "203.0.113.0/24"}
		})
		w.settles("web")
		if diff := cmp.Diff([]string{"192.0.2.0/24", "203.0.113.0/24"}, w.entries()); diff != "" {
			w.t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
}

// TestAccessListInUse: whatever the cloud answers to the deletion of an access list that a listener of somebody else uses, the list stays
// until it is free, and then goes with the Service.
func TestAccessListInUse(t *testing.T) {
	t.Parallel()
	onBothSides(t, "slb.OperationFailed.AclBindedWithVip", restricted("192.0.2.0/24"), func(w *world) {
		foreign := w.makeCLB().ID
		w.makeListener(foreign, 80, "own")
		w.raw(api.VersionSLB, "SetLoadBalancerTCPListenerAttribute", map[string]string{
			"LoadBalancerId": foreign, "ListenerPort": "80", "AclStatus": "on", "AclType": "white", "AclId": w.listID(),
		}, nil)
		w.change("web", deleteService)
		if err := w.pass("web"); err == nil || len(w.entries()) != 1 {
			w.t.Errorf("error %v, entries %v: want the list to be in use", err, w.entries())
		}
		w.deleteListener(foreign, 80)
		w.converge("web")
		if _, found := w.state()[testListName]; found {
			w.t.Error("the list is left")
		}
	})
}

// TestFullOfTags: whatever the cloud answers when a CLB can have no more tags, because somebody has added some since it was read,
// everything else of the Service is done.
func TestFullOfTags(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"TooManyTags", "TagCountLimit", "QuotaExceeded.TagsPerResource"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.fault(map[string]any{"action": "TagResources", "code": code, "status": 400})
			w.change("web", func(svc *corev1.Service) {
				annotate(svc, annotation.AdditionalTags, "one=more")
				svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
			})
			if err := w.pass("web"); !alicloud.HasCode(err, code) {
				t.Errorf("error %v, want one with %s", err, code)
			}
			if listeners := w.state()["a0f5e8a1cweb"].Listeners; len(listeners) != 2 {
				t.Errorf("listeners %v, want two", listeners)
			}
		})
	}
}

// TestBusyExtension: an extension that is still being changed is waited for, like a busy listener.
func TestBusyExtension(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"DomainExtensionProcessing", "IncorrectStatus.DomainExtension"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := settled(t, secured("a.example.com:cert-1"))
			w.fault(map[string]any{"action": "SetDomainExtensionAttribute", "code": code, "status": 400, "times": 1})
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.DomainExtensions, "a.example.com:cert-2") })
			w.mustPass("web")
			w.settles("web")
			if diff := cmp.Diff([]string{"a.example.com:cert-2"}, w.domains(443)); diff != "" {
				t.Errorf("extensions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddressOfAnyIPv6Range: a Service shows the IPv6 address of its CLB, whether that is in the range of the vSwitch or not.
func TestAddressOfAnyIPv6Range(t *testing.T) {
	t.Parallel()
	six := testService("six", 80)
	annotate(six, annotation.AddressType, "intranet")
	annotate(six, annotation.IPVersion, "ipv6")
	onBothSides(t, "network.ipv6-addresses", testService("web", 443), func(w *world) {
		w.put(six.DeepCopy())
		w.settles("six")
		ingress := w.get("six").Status.LoadBalancer.Ingress
		if len(ingress) != 1 || !strings.Contains(ingress[0].IP, ":") {
			w.t.Errorf("the status has %v, want an IPv6 address", ingress)
		}
	})
}
