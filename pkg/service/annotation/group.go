package annotation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// GroupOf returns the group that a Service asks to share load balancers with, without parsing its other annotations. It says false for a
// Service that asks for none, and for one that names a load balancer, which counts before a group.
func GroupOf(svc *corev1.Service) (namespace, name string, ok bool) {
	text, ok := Lookup(svc.Annotations, Group)
	if !ok {
		return "", "", false
	}
	if _, named := Lookup(svc.Annotations, LoadBalancerID); named {
		return "", "", false
	}
	if text = strings.TrimSpace(text); !wholeMatch(groupPattern, text) {
		return "", "", false
	}
	if namespace, name, ok = strings.Cut(text, "/"); !ok {
		namespace, name = svc.Namespace, namespace
	}
	return namespace, name, true
}

// GroupOverflows reports whether the Service asks for a group that opens another load balancer where one has no room.
func GroupOverflows(svc *corev1.Service) bool {
	_, _, grouped := GroupOf(svc)
	return grouped && Overflows(svc)
}

// Overflows reports whether the Service may be on another load balancer of its group than the others.
func Overflows(svc *corev1.Service) bool {
	text, _ := Lookup(svc.Annotations, GroupOverflow)
	return strings.TrimSpace(text) == "true"
}
