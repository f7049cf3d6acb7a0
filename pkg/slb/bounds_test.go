package slb

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// allocatedBy returns how many bytes f allocates. Tests that call it are not parallel: others would count.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongValues: what a user writes comes back in messages of bounded length.
func TestLongValues(t *testing.T) { //nolint:paralleltest // counts what the whole process allocates
	value := strings.Repeat("\x01", 250_000)
	var problems []problem.Problem
	allocated := allocatedBy(func() {
		for i := range 12 {
			annotations := map[string]string{}
			for _, suffix := range []annotation.Suffix{
				annotation.Name, annotation.Bandwidth, annotation.ChargeType, annotation.AddressType, annotation.IPVersion, annotation.Spec,
				annotation.DeleteProtection, annotation.Scheduler, annotation.CertID, annotation.ACLID, annotation.ProtocolPort,
			} {
				annotations[key(suffix)] = value[i:]
			}
			_, found := annotation.Parse(annotations)
			problems = append(problems, found...)
		}
	})
	if allocated > 20<<20 {
		t.Errorf("%d bytes were allocated for the problems of 12 Services with 11 values of 250 kB", allocated)
	}
	for _, p := range problem.ByReason(problems) {
		if len(p.Message) > 24*1024 {
			t.Errorf("%s: message of %d bytes", p.Reason, len(p.Message))
		}
	}
}

// TestConditionIsBounded: neither the condition nor an event of a Service grows with what its author writes.
func TestConditionIsBounded(t *testing.T) { //nolint:paralleltest // counts what the whole process allocates
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	for i := range 3334 {
		svc.Annotations[fmt.Sprintf("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-unknown-%04d", i)] = "x"
	}
	for _, suffix := range []annotation.Suffix{annotation.Bandwidth, annotation.ChargeType, annotation.IPVersion} {
		annotate(svc, suffix, strings.Repeat("\x01", 250_000))
	}
	w.put(svc)
	w.pass("web") //nolint:errcheck // what counts is what is written
	for _, condition := range w.get("web").Status.Conditions {
		if len(condition.Message) > problem.MaxCondition {
			t.Errorf("%s: message of %d bytes", condition.Type, len(condition.Message))
		}
	}
	for _, event := range w.newEvents() {
		if len(event) > 1200 {
			t.Errorf("event of %d bytes: %.80s", len(event), event)
		}
	}
}

// hostile makes a Service with backends of type eni, and ten EndpointSlices of a thousand invented addresses.
func (w *world) hostile(ports int) {
	w.t.Helper()
	svc := &corev1.Service{}
	for i := range ports {
		if i == 0 {
			svc = testService("web", int32(i+1))
			continue
		}
		svc.Spec.Ports = append(svc.Spec.Ports, testService("web", int32(i+1)).Spec.Ports[0])
	}
	svc.Annotations[annotation.BackendType] = alicloud.BackendENI
	for s := range 10 {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", s), Namespace: svc.Namespace,
				Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		for i := range svc.Spec.Ports {
			slice.Ports = append(slice.Ports,
				discoveryv1.EndpointPort{Name: new(svc.Spec.Ports[i].Name), Port: new(int32(8080)), Protocol: ptr.To(corev1.ProtocolTCP)})
		}
		for e := range 1000 {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 1+s, e/250, e%250)}})
		}
		w.putSlice(slice)
	}
	w.put(svc)
}

// TestManyPorts: nothing is built for a Service with more ports than any load balancer has listeners.
func TestManyPorts(t *testing.T) { //nolint:paralleltest // counts what the whole process allocates
	w := newWorld(t)
	threeNodes(w)
	w.hostile(400)
	allocated := allocatedBy(func() { w.pass("web") }) //nolint:errcheck // the event says it
	if allocated > 20<<20 {
		t.Errorf("a pass over 400 ports and 10,000 addresses allocated %d bytes", allocated)
	}
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
	if events := w.newEvents(); len(events) != 1 ||
		!strings.Contains(events[0], fmt.Sprintf("400 ports; accepted: at most %d", service.MaxPorts)) {
		t.Errorf("events = %.200q, want one about the ports", events)
	}
}

// TestManyAddresses: of more addresses than any load balancer takes, the first count.
func TestManyAddresses(t *testing.T) { //nolint:paralleltest // counts what the whole process allocates
	w := newWorld(t)
	threeNodes(w)
	w.hostile(50)
	allocated := allocatedBy(func() { w.pass("web") }) //nolint:errcheck // the event says it
	if allocated > 200<<20 {
		t.Errorf("a pass over 50 ports and 10,000 addresses allocated %d bytes", allocated)
	}
	lookups := 0
	for _, call := range w.calls() {
		if strings.HasPrefix(call, "DescribeNetworkInterfaces") {
			lookups++
		}
	}
	if lookups > 20 {
		t.Errorf("%d calls looked for network interfaces, want those for 1,000 addresses", lookups)
	}
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "9000 addresses of pods are not backends") {
		t.Errorf("events = %.400s, want one about the addresses", events)
	}
}
