package bench

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	namespace = metav1.NamespaceDefault
	app       = "web"
	appPort   = 80
	firstPort = 8000 // of Services; they count up from here
)

// What users write to get the load balancers of these scenarios.
const (
	annotationAddressType = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type"
	annotationScheduler   = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-scheduler"
	annotationSubset      = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-backend-subset"
	annotationBackendType = "service.beta.kubernetes.io/backend-type"
	annotationGroup       = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-group"
)

var appLabels = map[string]string{"app": app}

// runApp runs the pods behind all Services with a selector.
func (e *env) runApp(ctx context.Context, replicas int32) error {
	_, err := e.client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: appLabels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: appLabels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: app, Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: appPort}},
				}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the deployment: %w", err)
	}
	return e.untilPods(ctx, replicas)
}

// scaleApp changes the endpoints of all Services with a selector.
func (e *env) scaleApp(ctx context.Context, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := e.client.AppsV1().Deployments(namespace).Patch(ctx, app, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("scale the deployment: %w", err)
	}
	return e.untilPods(ctx, replicas)
}

func (e *env) untilPods(ctx context.Context, n int32) error {
	return e.until(ctx, "the pods are ready", func(ctx context.Context) (string, error) {
		deployment, err := e.client.AppsV1().Deployments(namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read the deployment: %w", err)
		}
		if ready := deployment.Status.ReadyReplicas; ready != n {
			return fmt.Sprintf("%d of %d are", ready, n), nil
		}
		return "", nil
	})
}

// newService is an intranet load balancer in front of the app.
func newService(name string, ports int) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationAddressType: "intranet"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: appLabels},
	}
	for i := range ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("p%d", i), Protocol: corev1.ProtocolTCP, Port: int32(firstPort + i), TargetPort: intstr.FromInt32(appPort),
		})
	}
	return service
}

// serve creates a Service and waits for its address.
func (e *env) createService(ctx context.Context, service *corev1.Service) error {
	if _, err := e.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Service %s: %w", service.Name, err)
	}
	return e.until(ctx, "Service "+service.Name+" has an address", func(ctx context.Context) (string, error) {
		got, err := e.service(ctx, service.Name)
		if err != nil {
			return "", err
		}
		if len(got.Status.LoadBalancer.Ingress) == 0 {
			return "it has none", nil
		}
		return "", nil
	})
}

func (e *env) service(ctx context.Context, name string) (*corev1.Service, error) {
	service, err := e.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Service %s: %w", name, err)
	}
	return service, nil
}

func (e *env) patchService(ctx context.Context, name, patch string) error {
	_, err := e.client.CoreV1().Services(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch Service %s: %w", name, err)
	}
	return nil
}

// annotateService sets an annotation of a Service.
func (e *env) annotateService(ctx context.Context, name, key, value string) error {
	return e.patchService(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// deleteService deletes a Service and waits until it is gone.
func (e *env) deleteService(ctx context.Context, name string) error {
	if err := e.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete Service %s: %w", name, err)
	}
	return e.until(ctx, "Service "+name+" is gone", func(ctx context.Context) (string, error) {
		_, err := e.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read Service %s: %w", name, err)
		default:
			return "it is still there", nil
		}
	})
}

// endpointSlice are endpoints of a Service without selector, whose one port it serves.
func endpointSlice(service *corev1.Service, addresses []string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service.Name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: &service.Spec.Ports[0].Name, Port: ptr.To[int32](appPort), Protocol: &service.Spec.Ports[0].Protocol,
		}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return slice
}
