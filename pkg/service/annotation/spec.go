package annotation

import (
	"maps"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// MaxPersistence is the largest session persistence in seconds that a listener takes; Kubernetes allows a day.
const MaxPersistence = 3600

// Of reads the annotations of a Service, and the fields of its spec that mean the same as one.
func Of(svc *corev1.Service) (Params, []problem.Problem) {
	params, problems := Parse(svc.Annotations)
	params.values = maps.Clone(params.values)
	params.sessionAffinity(svc)
	if problem, ok := params.loadBalancerIP(svc); !ok {
		problems = append(problems, problem)
		params.refuseSuffixes(IP)
	}
	return params, problems
}

// sessionAffinity stands for the annotation persistence-timeout, so that it also goes back to the default like one.
func (p *Params) sessionAffinity(svc *corev1.Service) {
	if _, annotated := Lookup(svc.Annotations, PersistenceTimeout); annotated || svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return
	}
	timeout := corev1.DefaultClientIPServiceAffinitySeconds
	if config := svc.Spec.SessionAffinityConfig; config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil {
		timeout = *config.ClientIP.TimeoutSeconds
	}
	p.SessionAffinity = true
	p.values[PersistenceTimeout] = strconv.Itoa(int(min(timeout, MaxPersistence)))
}

// loadBalancerIP stands for the annotation ip. The API server takes any text for it.
func (p Params) loadBalancerIP(svc *corev1.Service) (problem.Problem, bool) {
	text := svc.Spec.LoadBalancerIP
	if _, annotated := Lookup(svc.Annotations, IP); annotated || text == "" {
		return problem.Problem{}, true
	}
	if address, err := netip.ParseAddr(text); err != nil || !address.Is4() {
		return p.familyOf().invalidValue("spec.loadBalancerIP", text, "an IPv4 address"), false
	}
	p.values[IP] = text
	return problem.Problem{}, true
}
