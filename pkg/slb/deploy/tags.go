package deploy

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

func (a *Applier) tagCLB(ctx context.Context, step model.Step) error {
	have, tags := &a.model.LoadBalancer, step.LoadBalancer.Tags
	if err := a.callOnce(ctx, func() error { return a.api.TagLoadBalancer(ctx, have.ID, tags) }); err != nil {
		return err
	}
	have.Tags = mergeTags(have.Tags, tags)
	return nil
}

// RefusedAnnotations returns the names of the annotations whose attributes the cloud refused.
func (a *Applier) RefusedAnnotations() []string {
	var names []string
	for op, refused := range a.refused {
		if suffix, ok := model.AnnotationOf[op]; ok && refused {
			names = append(names, string(suffix))
		}
	}
	return names
}

func mergeTags(have, want []alicloud.Tag) []alicloud.Tag {
	merged := slices.DeleteFunc(slices.Clone(have), func(old alicloud.Tag) bool {
		return slices.ContainsFunc(want, func(tag alicloud.Tag) bool { return tag.Key == old.Key })
	})
	return append(merged, want...)
}
