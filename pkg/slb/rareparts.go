package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// mayHaveAccessList reports whether an access control list of the Service needs to be read. Most Services never had one.
func mayHaveAccessList(svc *corev1.Service, params annotation.Params, actual *model.Model, record driver.Record) bool {
	if len(annotation.SourceRangesOf(svc)) > 0 {
		return true
	}
	if actual == nil {
		return false
	}
	if actual.Reused {
		return params.OverridesListeners()
	}
	return slices.Contains(record.Annotations, driver.RecordedSourceRanges) ||
		slices.ContainsFunc(actual.Listeners, func(l model.Listener) bool {
			marked, _, ok := mark.Parse(l.Description)
			return ok && marked == mark.ServiceName(svc) && l.Attributes[alicloud.AttributeACLIDs] != "" && !params.Has(annotation.ACLID)
		})
}

// accessLists returns the ids that may be those of the Service's access control list: the known one, and those on its listeners.
func (o observed) accessLists(svc *corev1.Service) []string {
	var ids []string
	if o.access.Value != nil {
		ids = append(ids, o.access.Value.ID)
	}
	params, _ := annotation.Parse(svc.Annotations)
	asked := alicloud.Attributes{alicloud.AttributeACLIDs: params.Get(annotation.ACLID)}.ACLIDs()
	for i := range o.listeners.Value {
		listener := &o.listeners.Value[i]
		if marked, _, ok := mark.Parse(listener.Description); !ok || marked != mark.ServiceName(svc) {
			continue
		}
		for _, id := range listener.Attributes.ACLIDs() {
			if !slices.Contains(asked, id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// mayHaveExtensions reports whether extensions need to be read. Most Services never had any.
func mayHaveExtensions(params annotation.Params, actual *model.Model, record driver.Record) bool {
	if actual == nil || actual.Reused && !params.OverridesListeners() {
		return false
	}
	return params.Has(annotation.DomainExtensions) || len(record.Domains) > 0
}
