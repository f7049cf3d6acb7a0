package slb

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (a *applier) tag(ctx context.Context, step Step) error {
	have, tags := &a.model.LoadBalancer, step.loadBalancer.Tags
	if err := a.call(a.api.TagLoadBalancer(ctx, have.ID, tags)); err != nil {
		return err
	}
	have.Tags = mergeTags(have.Tags, tags)
	return nil
}

// refusedAnnotations returns the names of the annotations whose attributes the cloud refused.
func (a *applier) refusedAnnotations() []string {
	var names []string
	for op, refused := range a.refused {
		if suffix, ok := annotationOf[op]; ok && refused {
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
