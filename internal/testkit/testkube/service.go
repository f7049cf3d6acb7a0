package testkube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Service returns a Service of type LoadBalancer with externalTrafficPolicy Cluster and no port.
func Service(name string, change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID("0f5e8a1c-" + name), ResourceVersion: "1",
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster},
	}
	for _, f := range change {
		f(svc)
	}
	return svc
}

// Port returns a port of a Service: its name is "tcp-80", its target port is higher by 8000 and its node port by 30000.
func Port(port int32, protocol corev1.Protocol) corev1.ServicePort {
	return corev1.ServicePort{
		Name: fmt.Sprintf("%s-%d", strings.ToLower(string(protocol)), port), Protocol: protocol, Port: port,
		TargetPort: intstr.FromInt32(port + 8000), NodePort: port + 30000,
	}
}

// TCP adds TCP ports, each as [Port] makes it.
func TCP(ports ...int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		for _, port := range ports {
			svc.Spec.Ports = append(svc.Spec.Ports, Port(port, corev1.ProtocolTCP))
		}
	}
}

// Annotation sets an annotation, by its whole key.
func Annotation(key, value string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Annotations[key] = value }
}

// LocalTraffic sets externalTrafficPolicy Local.
func LocalTraffic(svc *corev1.Service) {
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

// Class sets spec.loadBalancerClass.
func Class(class string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = &class }
}

// SetCondition gives a Service a condition of the status True.
func SetCondition(svc *corev1.Service, kind, reason, message string) {
	meta.SetStatusCondition(&svc.Status.Conditions,
		metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}
