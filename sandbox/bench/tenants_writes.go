package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

const annotationPrefix = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"

// badAnnotations are annotations whose every text that is no value of theirs is reported.
var badAnnotations = []string{
	"name", "bandwidth", "charge-type", "address-type", "ip-version", "spec", "delete-protection", "scheduler", "cert-id", "acl-id", "protocol-port",
}

// createTenants creates a Service of the tenant and does not wait for its address.
func (e *env) createTenants(ctx context.Context, service *corev1.Service) error {
	_, err := e.client.CoreV1().Services(tenantNamespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Service %s of the tenant: %w", service.Name, err)
	}
	return nil
}

// writeTexts writes values of control characters, which become four times as long where they are quoted.
func (e *env) writeTexts(ctx context.Context, services, values int) error {
	text := strings.Repeat("\x01", 250_000)
	for i := range services {
		service := newService(fmt.Sprintf("texts-%d", i), 1)
		if err := e.createTenants(ctx, service); err != nil {
			return err
		}
		for v := range values {
			annotations := map[string]any{annotationPrefix + badAnnotations[v%len(badAnnotations)]: text}
			if v > 0 { // the API server takes 256 kB of annotations
				annotations[annotationPrefix+badAnnotations[(v-1)%len(badAnnotations)]] = nil
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
			if err != nil {
				return fmt.Errorf("encode a patch: %w", err)
			}
			if err := e.patchTenants(ctx, service.Name, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *env) patchTenants(ctx context.Context, name string, patch []byte) error {
	_, err := e.client.CoreV1().Services(tenantNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch Service %s of the tenant: %w", name, err)
	}
	return nil
}

// writeAddresses writes a Service with pods as backends and EndpointSlices of addresses that nothing has.
func (e *env) writeAddresses(ctx context.Context, name string, ports, addresses int) error {
	const perSlice = 1000
	service := newService(name, ports)
	service.Spec.Selector = nil
	service.Spec.AllocateLoadBalancerNodePorts = ptr.To(false) // as many as there are would not do
	service.Annotations[annotationBackendType] = "eni"
	for first := 0; first < addresses; first += perSlice {
		slice := endpointSlice(service, nil)
		slice.Name = fmt.Sprintf("%s-%d", name, first/perSlice)
		slice.Ports = nil
		for i := range min(ports, 100) { // the API server takes 100 in a slice
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
				Name: &service.Spec.Ports[i].Name, Port: ptr.To[int32](appPort), Protocol: &service.Spec.Ports[i].Protocol,
			})
		}
		for i := range min(perSlice, addresses-first) {
			address := fmt.Sprintf("10.%d.%d.%d", 64+first/perSlice, i/250, i%250+1)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
		}
		if _, err := e.client.DiscoveryV1().EndpointSlices(tenantNamespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create an EndpointSlice of the tenant: %w", err)
		}
	}
	return e.createTenants(ctx, service)
}

// podsOfNeighbor creates a Service whose backend servers are addresses, and returns what replaces one of them and measures how long the
// call takes that removes it.
func (e *env) podsOfNeighbor(ctx context.Context) (move func(context.Context) (time.Duration, error), err error) {
	service := newService("neighbor-of-pods", 1)
	service.Spec.Selector = nil
	service.Annotations[annotationBackendType] = "eni"
	var addresses []string
	for _, instance := range e.cloud.Instances() {
		addresses = append(addresses, instance.PrivateIP)
	}
	api := e.client.DiscoveryV1().EndpointSlices(namespace)
	if _, err := api.Create(ctx, endpointSlice(service, addresses), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create the endpoints: %w", err)
	}
	if err := e.createService(ctx, service); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (time.Duration, error) {
		e.begin()
		changed := time.Now()
		if _, err := api.Update(ctx, endpointSlice(service, addresses[1:]), metav1.UpdateOptions{}); err != nil {
			return 0, fmt.Errorf("remove an endpoint: %w", err)
		}
		removal := orAction(func(emulator.Call) bool { return false }, "RemoveVServerGroupBackendServers")
		if err := e.untilCalled(ctx, removal); err != nil {
			return 0, err
		}
		took := e.since(removal)[0].Time.Sub(changed)
		e.say("the dead backend server leaves after %s", took.Round(time.Millisecond))
		return took, nil
	}, nil
}

// dropTenants takes the load balancers of the tenant's Services out of the way: they become Services of another type, and lose their
// finalizer.
func (e *env) dropTenants(ctx context.Context) error {
	services, err := e.client.CoreV1().Services(tenantNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Services of the tenant: %w", err)
	}
	for i := range services.Items {
		if err := e.client.CoreV1().Services(tenantNamespace).Delete(ctx, services.Items[i].Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete a Service of the tenant: %w", err)
		}
	}
	return nil
}

// writeHostile writes Services of many kinds, slices for some of them, and changes of others.
func (e *env) writeHostile(ctx context.Context, first, services, slices, updates int) error {
	for i := first; i < first+services; i++ {
		service := newService(fmt.Sprintf("hostile-%d", i), 1+i%4)
		kinds[i%len(kinds)](service, i)
		if err := e.createTenants(ctx, service); err != nil {
			return err
		}
		if i-first < slices {
			slice := endpointSlice(service, []string{fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), fmt.Sprintf("192.0.2.%d", i%250+1)})
			if _, err := e.client.DiscoveryV1().EndpointSlices(tenantNamespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create an EndpointSlice of the tenant: %w", err)
			}
		}
		if i-first < updates {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"%sscheduler":"%s"}}}`, annotationPrefix, strings.Repeat("x", i%1000))
			if err := e.patchTenants(ctx, service.Name, patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// kinds are what a Service of a hostile tenant may be like.
var kinds = []func(*corev1.Service, int){
	func(*corev1.Service, int) {},
	func(s *corev1.Service, _ int) { s.Annotations[annotationPrefix+"id"] = "lb-of-somebody-else" },
	func(s *corev1.Service, i int) {
		for n := range 300 {
			s.Annotations[fmt.Sprintf("%sunknown-%d-%d", annotationPrefix, i, n)] = "x"
		}
	},
	func(s *corev1.Service, _ int) {
		s.Spec.Selector, s.Annotations[annotationBackendType] = nil, "eni"
	},
	func(s *corev1.Service, _ int) {
		s.Annotations[annotationPrefix+"backend-label"] = "no=node"
	},
	func(s *corev1.Service, _ int) {
		s.Annotations[annotationPrefix+"preserve-lb-on-delete"] = "true"
	},
	func(s *corev1.Service, _ int) {
		s.Annotations[annotationPrefix+"protocol-port"] = "https:8000,http:8001"
		s.Annotations[annotationPrefix+"cert-id"] = strings.Repeat("c", 10_000)
	},
	func(s *corev1.Service, _ int) {
		s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "0.0.0.0/0"}
	},
}
