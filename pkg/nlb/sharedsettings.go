package nlb

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// ofBalancer are the annotations that set something of the load balancer itself, of which an existing one has one value for all its
// Services. Tags are compared one by one, and source ranges have no effect there.
var ofBalancer = []annotation.Suffix{
	annotation.Name, annotation.AddressType, annotation.IPv6AddressType, annotation.CrossZoneEnabled, annotation.BandwidthPackageID,
	annotation.ZoneMaps, annotation.SecurityGroupIDs,
}

// leaveOutSetByOthers leaves out of the annotations what another Service sets of the same existing load balancer: each would else undo at
// every read what the other one did. Of two that set something the older one does, and reports where the younger one wants something else;
// what was removed from the annotations reverts to nothing that another one sets.
func (n nlb) leaveOutSetByOthers(in build.Input) (after build.Input, problems []problem.Problem, err error) {
	if !n.Reused() || !in.Params.OverridesListeners() {
		return in, nil, nil
	}
	others, err := n.neighborServices(in.Service)
	if err != nil {
		return in, nil, err
	}
	svc := *in.Service // without what it yields: an empty annotation says something, too
	for _, suffix := range ofBalancer {
		mine := isSet(in.Service, in.Params, suffix) && !in.Params.Reverted[suffix]
		other, value := n.setterOf(others, suffix)
		if other == nil || mine && driver.ByAge(in.Service, other) < 0 {
			continue
		}
		if mine && !sameValue(in.Params.Get(suffix), value) {
			problems = append(problems,
				problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: Service %s, which is older, sets it on NLB %s, too",
					suffix, mark.ServiceName(other), n.ID()))
		}
		in.Params, svc.Annotations = in.Params.Without(suffix), annotation.Without(svc.Annotations, suffix)
		if suffix == annotation.SecurityGroupIDs {
			in.LeaveGroups = nil
		}
	}
	in.Service = &svc
	return in, problems, nil
}

// setterOf returns the first of the Services that has the annotation, with its value, and nil for none.
func (n nlb) setterOf(services []*corev1.Service, suffix annotation.Suffix) (svc *corev1.Service, value string) {
	for _, svc := range services {
		if params, _ := n.Params(svc); isSet(svc, params, suffix) {
			return svc, params.Get(suffix)
		}
	}
	return nil, ""
}

// neighborServices returns the other Services that manage the load balancer, the oldest first.
func (n nlb) neighborServices(svc *corev1.Service) ([]*corev1.Service, error) {
	all, err := n.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	var others []*corev1.Service
	for _, other := range all {
		if other.UID == svc.UID || other.DeletionTimestamp != nil || !Product.AskedBy(n.config, other) {
			continue
		}
		params, _ := n.Params(other)
		if params.Get(annotation.LoadBalancerID) == n.ID() && params.OverridesListeners() && n.refusedByPolicy(other, &n.lb.Value) == "" {
			others = append(others, other)
		}
	}
	slices.SortFunc(others, driver.ByAge)
	return others, nil
}

// isSet reports whether a Service has an annotation, with a value or empty.
func isSet(svc *corev1.Service, params annotation.Params, suffix annotation.Suffix) bool {
	return params.Has(suffix) || annotation.Emptied(svc.Annotations, suffix)
}

// sameValue reports whether two values mean the same, whatever their spelling and the order of a list.
func sameValue(a, b string) bool {
	normal := func(value string) []string {
		return slices.Sorted(strings.FieldsFuncSeq(strings.ToLower(value), func(r rune) bool { return r == ',' || r == ' ' }))
	}
	return slices.Equal(normal(a), normal(b))
}
