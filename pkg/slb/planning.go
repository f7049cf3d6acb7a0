package slb

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// planned is what a pass wants, and how to get there.
type planned struct {
	plan    model.Plan
	desired *model.Model
	// record is what is applied once the plan was carried out, nil to leave the Record as it is.
	record   *Record
	problems []problem.Problem
}

// reversal returns the parameters with the values to go back to, for annotations that were applied and are gone. The attributes
// of an existing CLB whose listeners the Service does not manage are its owner's.
func reversal(params annotation.Params, applied Record, clb *model.Model) annotation.Params {
	if clb != nil && clb.Reused && !params.OverridesListeners() {
		return params
	}
	return params.Revert(applied.Annotations)
}

// plan compares what is wanted with what is there. reclaimed is the id of a CLB whose delete protection a removal that was
// begun switched off.
func (e *engine) plan(inputs gathered, params annotation.Params, clb observed, applied Record, reclaimed string) (planned, error) {
	in, actual := inputs.in, clb.model()
	record := recordOf(applied.LoadBalancerID, params, clb.reused(), len(annotation.SourceRangesOf(in.Service)) > 0 || clb.access.value != nil)
	record = record.keeping(applied, params)
	removable, err := e.removableTags(in.Service, applied, record)
	if err != nil {
		return planned{}, err
	}
	in.RemoveTags, in.RemoveDomains = removable, diff.NotIn(applied.Domains, record.Domains)
	desired, problems := build.Build(in)
	if actual != nil && !actual.Reused && actual.LoadBalancer.ID == reclaimed && desired.LoadBalancer.DeleteProtection == "" {
		desired.LoadBalancer.DeleteProtection = desired.Create.DeleteProtection
	}
	if actual == nil && clb.access.value != nil {
		actual = &model.Model{Access: clb.access.value}
	}
	found := planned{desired: desired, plan: diff.Diff(desired, actual, mark.ServiceName(in.Service), in.ClusterID), record: &record}
	found.problems = append(problems, found.plan.Problems...)
	return found, nil
}

// removableTags returns the keys of tags that left the annotation. On an existing CLB those stay that another Service asks for.
func (e *engine) removableTags(svc *corev1.Service, applied, wanted Record) ([]string, error) {
	gone := diff.NotIn(applied.TagKeys, wanted.TagKeys)
	if len(gone) == 0 {
		return nil, nil
	}
	services, err := e.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	for _, other := range services {
		if mark.ServiceName(other) == mark.ServiceName(svc) || !wantsLoadBalancer(e.config, other) {
			continue
		}
		if params, _ := annotation.Parse(other.Annotations); params.Get(annotation.LoadBalancerID) == applied.LoadBalancerID {
			gone = diff.NotIn(gone, recordOf(applied.LoadBalancerID, params, true, false).TagKeys)
		}
	}
	return gone, nil
}
