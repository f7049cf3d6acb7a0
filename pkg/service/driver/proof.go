package driver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Evidence is what a load balancer without the owner tag shows of a Service. Whether it is the Service's is proven only by what the author
// of a Service cannot write: tags and marks in the cloud, and the status. A name, a label, a finalizer or an annotation says where to look,
// no more: whoever can edit Services can also write those.
type Evidence struct {
	ID, Name string
	Tags     []alicloud.Tag
	// Shown says that the status of the Service shows the address of the load balancer, Marked that a listener has the mark of the Service.
	Shown, Marked bool
}

// Owns reports whether a load balancer that lacks the owner tag was made for the Service all the same, so that it may get the tag, without
// which it is not deleted: the official CCM wrote none in early versions, and a person or a rule may have removed it. All that is left must
// agree.
func (e Evidence) Owns(svc *corev1.Service) bool {
	return e.Marked && e.fitsService(svc)
}

// MadeFor reports whether the Record says that a load balancer without the owner tag was created for the Service, and nothing on it
// contradicts that. It may have no listener yet, and so no mark.
func (e Evidence) MadeFor(svc *corev1.Service) bool {
	record, _ := RecordOn(svc)
	return record.Made == e.ID && e.fitsService(svc)
}

// fitsService reports whether what there is besides a mark says that the load balancer was made for the Service.
func (e Evidence) fitsService(svc *corev1.Service) bool {
	if IsAnothers(e.Tags) || len(e.Tags) >= annotation.MaxTags { // the last one has no room for the tag
		return false
	}
	record, _ := RecordOn(svc)
	if record.UsesExisting(e.ID) {
		return false
	}
	if record.Made == e.ID {
		name, _ := annotation.Lookup(svc.Annotations, annotation.Name)
		return e.Name == mark.DefaultName(svc.UID) || e.Name == name
	}
	return e.Shown && e.Name == mark.DefaultName(svc.UID)
}

// UsesExisting reports whether a load balancer is one that the Service has named by its id, also if its annotation is gone by now.
func (r Record) UsesExisting(id string) bool { return r.Existing && r.LoadBalancerID == id }

// IsAnothers reports whether a tag says that a load balancer is not that of one Service, or of no Service any more: of another Service, of
// a group, of its owner, or preserved.
func IsAnothers(tags []alicloud.Tag) bool {
	return slices.ContainsFunc(tags, func(tag alicloud.Tag) bool {
		switch tag.Key {
		case mark.TagOwner, mark.TagGroup, mark.TagReused, mark.TagAllow, mark.TagPreserved:
			return true
		}
		return false
	})
}

// OwnedBy reports whether the owner tag names the Service.
func OwnedBy(svc *corev1.Service, tags []alicloud.Tag) bool {
	return slices.Contains(tags, alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)})
}

// WithoutOwner returns tags that a load balancer is to have without those that say whose it is.
func WithoutOwner(tags []alicloud.Tag) []alicloud.Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(tag alicloud.Tag) bool { return tag.Key == mark.TagOwner || tag.Key == mark.TagCluster })
}

// KeptBeside says that load balancers stay which have the owner tag of a Service, like the one that it used, empty where there are none.
// Only a human can tell whether they are the Service's: tags can be copied.
func KeptBeside(product Product, svc *corev1.Service, used string, others []string) string {
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s stays in the cloud: like %s %s, which this Service used, it has the tag %s=%s; if nobody uses it, delete it",
		product.Name+" "+problem.Some(others), product.Name, used, mark.TagOwner, mark.DefaultName(svc.UID))
}
