package slb

import (
	"context"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tag writes tags. While a step of the plan failed, what is remembered in tags only grows: that an annotation was applied
// may be forgotten only when what it set has gone back.
func (a *applier) tag(ctx context.Context, tags []alicloud.Tag) error {
	have := &a.model.LoadBalancer
	if len(a.failed)+len(a.errs) > 0 {
		tags = slices.DeleteFunc(rememberMore(tags, have), func(tag alicloud.Tag) bool {
			value, ok := have.Tag(tag.Key)
			return ok && value == tag.Value
		})
	}
	if len(tags) == 0 {
		return nil
	}
	if err := a.call(a.api.TagLoadBalancer(ctx, have.ID, tags)); err != nil {
		return err
	}
	have.Tags = mergeTags(have.Tags, tags)
	return nil
}

// rememberMore adds to the tags that are lists of ours what these tags list now.
func rememberMore(tags []alicloud.Tag, have *alicloud.LoadBalancer) []alicloud.Tag {
	more := slices.Clone(tags)
	for i, tag := range more {
		value, ok := have.Tag(tag.Key)
		if !ok || tag.Key != tagApplied && tag.Key != tagWritten {
			continue
		}
		items := strings.Split(value, ".")
		for item := range strings.SplitSeq(tag.Value, ".") {
			if !slices.Contains(items, item) && item != nothingApplied {
				items = append(items, item)
			}
		}
		if len(items) > 1 {
			items = slices.DeleteFunc(items, func(item string) bool { return item == nothingApplied })
		}
		more[i].Value = strings.Join(items, ".")
	}
	return more
}

func mergeTags(have, want []alicloud.Tag) []alicloud.Tag {
	merged := slices.DeleteFunc(slices.Clone(have), func(old alicloud.Tag) bool {
		return slices.ContainsFunc(want, func(tag alicloud.Tag) bool { return tag.Key == old.Key })
	})
	return append(merged, want...)
}
