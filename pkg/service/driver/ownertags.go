package driver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// OwnersTags are the tags of an existing load balancer as far as they are its owner's to write: any tag where the Service does not manage
// the listeners, and those that the load balancer had before. Overwriting them could also grant or take permissions that depend on tags.
type OwnersTags struct {
	// Tags are all tags of the load balancer.
	Tags []alicloud.Tag
	// Override says that the Service manages the listeners.
	Override bool
	// written are the keys that Services of the cluster wrote.
	written sets.Set[string]
}

// OwnersTagsOf returns the tags of a load balancer. Services are those of the cluster, and applied is the Record of the Service, which the
// cache may lag behind.
func OwnersTagsOf(id string, tags []alicloud.Tag, override bool, services corelisters.ServiceLister, applied Record) (OwnersTags, error) {
	all, err := services.List(labels.Everything())
	if err != nil {
		return OwnersTags{}, fmt.Errorf("list the Services: %w", err)
	}
	written := sets.New(applied.TagKeys...)
	for _, svc := range all {
		if record, ok := RecordOn(svc); ok && record.LoadBalancerID == id {
			written.Insert(record.TagKeys...)
		}
	}
	return OwnersTags{Tags: tags, Override: override, written: written}, nil
}

// Has reports whether a tag is the owner's.
func (o OwnersTags) Has(key string) bool {
	_, there := o.tagValue(key)
	return !o.written.Has(key) && (there || !o.Override)
}

func (o OwnersTags) tagValue(key string) (string, bool) {
	at := slices.IndexFunc(o.Tags, func(tag alicloud.Tag) bool { return tag.Key == key })
	if at < 0 {
		return "", false
	}
	return o.Tags[at].Value, true
}

// Ours returns those of the tags that the Service may write, and says which of the others are not as it wants them.
func (o OwnersTags) Ours(wanted []alicloud.Tag) (ours []alicloud.Tag, problems []problem.Problem) {
	var kept []string
	for _, tag := range wanted {
		if o.Override && !o.Has(tag.Key) {
			ours = append(ours, tag)
		} else if value, there := o.tagValue(tag.Key); o.Has(tag.Key) && (!there || value != tag.Value) {
			kept = append(kept, tag.Key)
		}
	}
	if len(kept) > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s: tags %s are not set: those of an existing load balancer are its owner's",
				annotation.AdditionalTags, problem.Some(kept)))
	}
	return ours, problems
}
