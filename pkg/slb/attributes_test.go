package slb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

// samples are values of a row that it accepts, at both ends of its range.
func samples(row annotation.Row) []string {
	switch row.Value.Kind {
	case annotation.Enum:
		return row.Value.Values
	case annotation.Integer:
		values := []string{strconv.Itoa(row.Value.Min), strconv.Itoa(row.Value.Max)}
		if row.Value.Also != "" {
			values = append(values, row.Value.Also)
		}
		return values
	default:
		return []string{row.Value.Sample}
	}
}

// TestEveryListenerAnnotationReachesTheCloud puts every value of every row on a listener of every protocol that has it,
// reads it back from the cloud, and makes sure that the next pass finds no difference.
func TestEveryListenerAnnotationReachesTheCloud(t *testing.T) {
	t.Parallel()
	for _, row := range annotation.ListenerTable() {
		if row.Attribute == "" {
			continue
		}
		for _, protocol := range row.Protocols {
			t.Run(fmt.Sprintf("%s of %s", string(row.Suffix), protocol), func(t *testing.T) {
				t.Parallel()
				svc := testService("web", 80)
				switch protocol {
				case alicloud.ProtocolUDP:
					svc.Spec.Ports = []corev1.ServicePort{testPort(80, corev1.ProtocolUDP)}
				case alicloud.ProtocolHTTP, alicloud.ProtocolHTTPS:
					annotate(svc, annotation.ProtocolPort, protocol+":80")
				}
				if protocol == alicloud.ProtocolHTTPS {
					annotate(svc, annotation.CertID, testCertificate)
				}
				w := settled(t, svc)
				for suffix, value := range companyOf(row) {
					w.change("web", func(svc *corev1.Service) { annotate(svc, suffix, value) })
				}
				for _, value := range samples(row) {
					putAttribute(t, w, row, protocol, value)
				}
			})
		}
	}
}

// companyOf are the annotations that one needs, but those that choose the protocol; an http check needs to be switched on.
func companyOf(row annotation.Row) map[annotation.Suffix]string {
	company := maps.Clone(explanations[row.Suffix].With)
	delete(company, annotation.ProtocolPort)
	delete(company, annotation.CertID)
	if company[annotation.HealthCheckType] != "" {
		company[annotation.HealthCheckFlag] = "on"
	}
	return company
}

func putAttribute(t *testing.T, w *world, row annotation.Row, protocol, value string) {
	t.Helper()
	w.change("web", func(svc *corev1.Service) { annotate(svc, row.Suffix, value) })
	w.mustPass("web")
	svc := w.get("web")
	params, _ := annotation.Parse(svc.Annotations)
	if !build.LegalFor(protocol, row.Suffix, value, params) {
		return
	}
	found, err := w.api.DescribeListeners(t.Context(), svc.Labels[driver.LabelLoadBalancerID])
	if err != nil {
		t.Fatal(err)
	}
	listeners := found[svc.Labels[driver.LabelLoadBalancerID]]
	if len(listeners) != 1 || listeners[0].Protocol != protocol {
		t.Fatalf("listeners = %v, want one of %s", listeners, protocol)
	}
	want := alicloud.Attributes{row.Attribute: build.Encode(row, value)}
	if got := listeners[0].Attributes[row.Attribute]; !want.Same(row.Attribute, listeners[0].Attributes) {
		t.Errorf("%s: %s is %q in the cloud, want %q", value, row.Attribute, got, build.Encode(row, value))
	}
	w.calls()
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("%s: the next pass writes %v", value, writes)
	}
}

// TestCLBAnnotations puts annotations of the CLB itself on a Service that stands.
func TestCLBAnnotations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		suffix annotation.Suffix
		value  string
		writes []string
		reason string
	}{
		{annotation.Name, "shop", []string{"SetLoadBalancerName"}, ""},
		{annotation.DeleteProtection, "off", []string{"SetLoadBalancerDeleteProtection"}, ""},
		{annotation.ModificationProtection, "NonProtection", []string{"SetLoadBalancerModificationProtection"}, ""},
		{annotation.AdditionalTags, "team=a,cost", []string{"TagResources"}, ""},
		{annotation.AddressType, "internet", nil, problem.ReasonImmutableAttribute},
		{annotation.IPVersion, "ipv6", nil, problem.ReasonImmutableAttribute},
		{annotation.VSwitchID, "vsw-b", nil, problem.ReasonImmutableAttribute},
		{annotation.MasterZoneID, "cn-hangzhou-b", nil, problem.ReasonImmutableAttribute},
		{annotation.InstanceChargeType, "PayBySpec", nil, problem.ReasonImmutableAttribute},
		{annotation.Bandwidth, "20", nil, problem.ReasonAnnotationNoEffect},
		{annotation.Scheduler, "fastest", nil, problem.ReasonInvalidAnnotation},
		{annotation.ExternalIPType, "eip", nil, problem.ReasonFailedSetEIPAddress},
	} {
		t.Run(string(test.suffix), func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.drift("web") // the answer to a creation does not contain the zones
			w.change("web", func(svc *corev1.Service) { annotate(svc, test.suffix, test.value) })
			w.mustPass("web")
			if writes := writesOf(w.calls()); !slices.Equal(writes, test.writes) {
				t.Errorf("writes %v, want %v", writes, test.writes)
			}
			if test.reason != "" {
				events := slices.DeleteFunc(w.newEvents(), func(e string) bool { return strings.HasPrefix(e, "Normal "+problem.ReasonEnsured) })
				if len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+test.reason) {
					t.Errorf("events = %q, want one %s", events, test.reason)
				}
			}
			w.newEvents()
			w.drift("web")
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("the next pass writes %v", writes)
			}
			if events := w.newEvents(); len(events) != 0 {
				t.Errorf("the next pass repeats the event: %q", events)
			}
		})
	}
}

// TestInvalidAnnotationStopsOnlyWhatNeedsIt: of a health check that is not accepted only the health check waits. While the program
// runs, its last accepted value counts also for a new listener; after a restart a new listener waits.
func TestInvalidAnnotationStopsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	for restarts, want := range map[bool][]string{
		false: {"CreateVServerGroup", "AddVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute", "CreateLoadBalancerTCPListener",
			"StartLoadBalancerListener"},
		true: {"CreateVServerGroup", "AddVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute"},
	} {
		w := settled(t, testService("web", 80))
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.HealthyThreshold, "99")
			annotate(svc, annotation.Scheduler, "wlc")
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
		})
		w.addNode("d")
		if restarts {
			w.restart()
		}
		w.mustPass("web")
		if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
			t.Errorf("restarted %v: writes (-want +got):\n%s", restarts, diff)
		}
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.HealthyThreshold, "9") })
		w.mustPass("web")
		if n := len(w.state()["a0f5e8a1cweb"].Listeners); n != 2 {
			t.Errorf("%d listeners once the annotation is valid, want 2", n)
		}
	}
}

func TestInvalidAnnotationMakesNoCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	annotate(svc, annotation.HealthyThreshold, "99")
	w.put(svc)
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v, want none", writes)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonInvalidAnnotation) {
		t.Errorf("events = %q, want one %s", events, problem.ReasonInvalidAnnotation)
	}
	if condition := w.get("web").Status.Conditions[0]; condition.Status != "False" || condition.Reason != problem.ReasonInvalidAnnotation {
		t.Errorf("condition = %v", condition)
	}
}

// TestDisablePublicFreezesNoBackends: the switch keeps new public CLBs from being created; those that exist are served.
func TestDisablePublicFreezesNoBackends(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.AddressType, "Internet")
	w := settled(t, svc)
	w.config.DisablePublicSLB = true
	w.restart()
	w.addNode("d")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"AddVServerGroupBackendServers"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.newEvents()
	second := testService("shop", 80)
	annotate(second, annotation.AddressType, "Internet")
	w.put(second)
	w.mustPassConfigError("shop")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the new Service writes %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	w.mustPass("web")
	if n := len(w.state()); n != 0 {
		t.Errorf("%d CLBs: the switch kept the deletion from working", n)
	}
}

// mustPassConfigError makes a pass that reports a mistake in the configuration and is not repeated at once.
func (w *world) mustPassConfigError(name string) {
	w.t.Helper()
	w.newEvents()
	wait, err := w.Reconcile(w.t.Context(), w.get(name))
	if err != nil || wait < testResyncPeriod {
		w.t.Errorf("Reconcile = %s, %v; want a long wait", wait, err)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonSyncFailed) {
		w.t.Errorf("events = %q, want one %s", events, problem.ReasonSyncFailed)
	}
}

func TestFullVSwitchIsNotTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "VSwitchAvailableIpNotExist", "status": 400})
	w.mustPass("web")
	calls := w.emulator.Unread()
	last := ""
	for _, call := range calls {
		if call.Action == "CreateLoadBalancer" {
			last = call.Parameters["VSwitchId"]
		}
	}
	if last != "vsw-b" {
		t.Errorf("the CLB is in %q, want the second vSwitch", last)
	}
}

// TestProxyProtocolSwitchIsReported once, and not as a warning.
func TestProxyProtocolSwitchIsReported(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProxyProtocol, "on") })
	w.mustPass("web")
	w.mustPass("web")
	if events := w.newEvents(); len(events) != 2 || !strings.HasPrefix(events[0], "Normal "+problem.ReasonAnnotationChanged) {
		t.Errorf("events %q, want one %s and the success", events, problem.ReasonAnnotationChanged)
	}
}
