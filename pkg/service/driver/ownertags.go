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

// ownersTags are the tags of an existing load balancer as far as they are its owner's to write: any tag where the Service does not manage
// the listeners, and those that the load balancer had before. Overwriting them could also grant or take permissions that depend on tags.
type ownersTags struct {
	tags []alicloud.Tag
	// override says that the Service manages the listeners.
	override bool
	// written are the keys that Services of the cluster wrote.
	written sets.Set[string]
}

// KeepOwnersTags leaves tags of an existing load balancer out of the Record that are its owner's. It returns those of the wanted ones that
// the Service may write, and says which of the others are not as it wants them. override says that the Service manages the listeners,
// services are those of the cluster, and applied is the last Record of the Service, which the cache may lag behind.
func KeepOwnersTags(
	id string, tags, wanted []alicloud.Tag, override bool, services corelisters.ServiceLister, record *Record, applied Record,
) (ours []alicloud.Tag, problems []problem.Problem, err error) {
	all, err := services.List(labels.Everything())
	if err != nil {
		return wanted, nil, fmt.Errorf("list the Services: %w", err)
	}
	owners := ownersTags{tags, override, sets.New(applied.TagKeys...)}
	for _, svc := range all {
		if written, ok := RecordOn(svc); ok && written.LoadBalancerID == id {
			owners.written.Insert(written.TagKeys...)
		}
	}
	record.TagKeys = slices.DeleteFunc(slices.Clone(record.TagKeys), owners.has)
	var kept []string
	for _, tag := range wanted {
		if override && !owners.has(tag.Key) {
			ours = append(ours, tag)
		} else if value, there := owners.tagValue(tag.Key); owners.has(tag.Key) && (!there || value != tag.Value) {
			kept = append(kept, tag.Key)
		}
	}
	if len(kept) > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "%s: tags %s are not set: those of an existing load balancer are its owner's",
				annotation.AdditionalTags, problem.Some(kept)))
	}
	return ours, problems, nil
}

// has reports whether a tag is the owner's.
func (o ownersTags) has(key string) bool {
	_, there := o.tagValue(key)
	return !o.written.Has(key) && (there || !o.override)
}

func (o ownersTags) tagValue(key string) (string, bool) {
	at := slices.IndexFunc(o.tags, func(tag alicloud.Tag) bool { return tag.Key == key })
	if at < 0 {
		return "", false
	}
	return o.tags[at].Value, true
}
