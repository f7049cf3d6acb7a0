package slb

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// recordOf returns what is applied once a pass has followed the annotations. On an existing CLB (annotation id) only what acts
// on listeners counts, and only where the Service manages them: the attributes of the CLB itself are its owner's.
// sourceRanges says that the Service has, or is to have, an access control list.
func recordOf(loadBalancerID string, params annotation.Params, reused, sourceRanges bool) driver.Record {
	rows := annotation.Table()
	if reused {
		rows = annotation.ListenerTable()
	}
	record := driver.Record{LoadBalancerID: loadBalancerID}
	if !reused || params.OverridesListeners() {
		record = appliedOf(loadBalancerID, params, rows)
	}
	if sourceRanges {
		record.Annotations = append(record.Annotations, driver.RecordedSourceRanges)
	}
	for _, tag := range annotation.TagsOf(params) {
		record.TagKeys = append(record.TagKeys, tag.Key)
	}
	return record.Sorted()
}

// recordInGroup is [recordOf] for a Service that shares its CLB and does not decide on its attributes and tags.
func recordInGroup(loadBalancerID string, params annotation.Params, sourceRanges bool) driver.Record {
	record := appliedOf(loadBalancerID, params, annotation.ListenerTable())
	if sourceRanges {
		record.Annotations = append(record.Annotations, driver.RecordedSourceRanges)
	}
	return record.Sorted()
}

// appliedOf returns which of some annotations are applied, and the domains.
func appliedOf(loadBalancerID string, params annotation.Params, rows []annotation.Row) driver.Record {
	record := driver.Record{LoadBalancerID: loadBalancerID, Annotations: params.Applied(rows)}
	for _, extension := range annotation.DomainExtensionsOf(params) {
		record.Domains = append(record.Domains, extension.Domain)
	}
	return record
}

// asRecorded returns the Record as that of the CLB.
func asRecorded(record driver.Record, actual *model.Model) driver.Record {
	if record.LoadBalancerID = ""; actual != nil {
		record.LoadBalancerID = actual.LoadBalancer.ID
	}
	return record
}

// loadRecord returns the Record of a CLB: that of this process, because the cache may lag behind what it wrote, else that of the
// Service. Without any, nothing is reverted: the CLB was adopted.
func loadRecord(remembered *driver.Record, svc *corev1.Service, actual *model.Model) driver.Record {
	id, reused := "", false
	if actual != nil {
		id, reused = actual.LoadBalancer.ID, actual.Reused
	}
	found, _ := driver.LoadRecord(remembered, svc, id, reused)
	return asRecorded(found, actual)
}
