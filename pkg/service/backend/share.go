package backend

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Join returns the backend servers of two ports that have one group, each server once. A product has a type of its own for them, and
// says what identifies one.
func Join[S any, K comparable](servers, more []S, key func(*S) K) []S {
	have := make(map[K]bool, len(servers))
	for i := range servers {
		have[key(&servers[i])] = true
	}
	for i := range more {
		if k := key(&more[i]); !have[k] {
			have[k] = true
			servers = append(servers, more[i])
		}
	}
	return servers
}

// Divide spreads the weight of a Service in a group over its backend servers in proportion to their own weights. Each gets at least 1,
// unless the weight is 0: with 0 it would take no traffic.
func Divide[S any](servers []S, weight int, of func(*S) *int) {
	total := 0
	for i := range servers {
		total += *of(&servers[i])
	}
	for i := range servers {
		own := of(&servers[i])
		share := weight / len(servers)
		if total > 0 {
			share = weight * *own / total
		}
		*own = max(share, min(weight, 1))
	}
}

// JoinLike gives servers the lowest weight that one of those of the Service serves with, which are present with their weights. Where none
// serves, they keep their own.
func JoinLike[K comparable, S any](servers []S, present map[K]int, of func(*S) *int) {
	lowest := 0
	for _, weight := range present {
		if weight > 0 && (lowest == 0 || weight < lowest) {
			lowest = weight
		}
	}
	if lowest == 0 {
		return
	}
	for i := range servers {
		*of(&servers[i]) = lowest
	}
}

// CheckPort returns what the user has to know about a port that no load balancer can serve; ok says that one can.
func CheckPort(port corev1.ServicePort) (found problem.Problem, ok bool) {
	if port.Protocol == corev1.ProtocolTCP || port.Protocol == corev1.ProtocolUDP {
		return problem.Problem{}, true
	}
	return problem.Newf(problem.ReasonFeatureNotSupported, "spec.ports: protocol %q of port %d is not accepted; accepted: TCP, UDP",
		port.Protocol, port.Port), false
}

// JoinedGroups returns the groups of others that ports join by the annotation vgroup-port, by port, the ports that it names twice, and what
// the user has to know about it.
func JoinedGroups(params annotation.Params, ports []corev1.ServicePort) (ids map[int32]string, twice []int32, problems []problem.Problem) {
	ids, twice = annotation.VGroupsOf(params)
	for _, port := range twice {
		problems = append(problems, problem.Newf(problem.ReasonInvalidAnnotation, "%s: port %d is specified twice", annotation.VGroupPort, port))
	}
	for _, port := range slices.Sorted(maps.Keys(ids)) {
		if !slices.ContainsFunc(ports, func(p corev1.ServicePort) bool { return p.Port == port }) {
			problems = append(problems,
				problem.Newf(problem.ReasonAnnotationNoEffect, "%s: %s:%d has no effect, because the Service has no port %d", annotation.VGroupPort,
					ids[port], port, port))
		}
	}
	return ids, twice, problems
}

// TargetPort is how the names of groups of pods spell the target port.
func TargetPort(port corev1.ServicePort) string {
	if text := port.TargetPort.String(); text != "0" && text != "" {
		return text
	}
	return strconv.Itoa(int(port.Port))
}

// Ineffective returns annotations that belong to another kind of backends.
func (in Input) Ineffective() []problem.Problem {
	var problems []problem.Problem
	if in.Params.Has(annotation.BackendLabel) && in.Pods {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect with %s: eni", annotation.BackendLabel, annotation.BackendType))
	}
	if in.Params.Has(annotation.DefaultWeight) && in.Local && !in.Pods {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect,
				"%s has no effect with externalTrafficPolicy Local: the weights are the numbers of endpoints", annotation.DefaultWeight))
	}
	if in.Pods && in.Params.Get(annotation.HealthCheck) == annotation.CheckNode {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s: node has no effect with %s: eni: it is about nodes", annotation.HealthCheck,
				annotation.BackendType))
	}
	switch graceful := in.Params.Get(annotation.GracefulShutdown); {
	case graceful == "":
	case !in.Pods:
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect without %s: eni: it is about pods", annotation.GracefulShutdown,
				annotation.BackendType))
	case graceful != "true":
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s: %q has no effect: pods that terminate always finish their connections",
				annotation.GracefulShutdown, graceful))
	}
	if mode := in.withoutSubset(); mode != "" {
		problems = append(problems, problem.Newf(problem.ReasonAnnotationNoEffect,
			"%s: %s has no effect with %s: the pods determine the backends", annotation.BackendSubset, in.Params.Get(annotation.BackendSubset),
			mode))
	}
	return problems
}

// withoutSubset returns what makes a number of nodes useless that an annotation asks for, empty for nothing. The words auto and off always
// have an effect: they say whether the quota of the load balancer counts.
func (in Input) withoutSubset() string {
	subset, ok := ParseSubset(in.Params.Get(annotation.BackendSubset))
	switch {
	case !ok || subset == SubsetAuto || subset == SubsetOff:
		return ""
	case in.Pods:
		return annotation.BackendType + ": eni"
	case in.Local:
		return "externalTrafficPolicy Local"
	}
	return ""
}
