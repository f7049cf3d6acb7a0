package slb

import (
	"context"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tag writes tags. While a step of the plan failed, what is remembered in tags only grows: that an annotation was applied
// may be forgotten only when what it set has gone back. One that the cloud refused was not applied.
func (a *applier) tag(ctx context.Context, tags []alicloud.Tag) error {
	have := &a.model.LoadBalancer
	if len(a.failed)+len(a.errs) > 0 {
		tags = slices.DeleteFunc(a.rememberMore(tags), func(tag alicloud.Tag) bool {
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
func (a *applier) rememberMore(tags []alicloud.Tag) []alicloud.Tag {
	more := slices.Clone(tags)
	for i, tag := range more {
		if tag.Key != tagApplied && tag.Key != tagWritten {
			continue
		}
		value, _ := a.model.LoadBalancer.Tag(tag.Key)
		items := strings.Split(value, ".")
		for item := range strings.SplitSeq(tag.Value, ".") {
			if !slices.Contains(items, item) && !a.refusedCode(tag.Key, item) {
				items = append(items, item)
			}
		}
		items = slices.DeleteFunc(items, func(item string) bool { return item == "" || item == nothingApplied })
		if more[i].Value = strings.Join(items, "."); more[i].Value == "" {
			more[i].Value = nothingApplied
		}
	}
	return more
}

// refusedCode reports whether an item of the tag of what was applied stands for an attribute that the cloud refused. Its
// removal would otherwise set the attribute to a default that nobody asked for.
func (a *applier) refusedCode(key, item string) bool {
	return key == tagApplied && slices.ContainsFunc(Annotations(), func(row Annotation) bool {
		return row.Code == item && a.refusedAnnotation(row.Suffix)
	})
}

func (a *applier) refusedAnnotation(suffix Suffix) bool {
	for op := range a.refused {
		if a.refused[op] && annotationOf[op] == suffix {
			return true
		}
	}
	return false
}

func mergeTags(have, want []alicloud.Tag) []alicloud.Tag {
	merged := slices.DeleteFunc(slices.Clone(have), func(old alicloud.Tag) bool {
		return slices.ContainsFunc(want, func(tag alicloud.Tag) bool { return tag.Key == old.Key })
	})
	return append(merged, want...)
}
