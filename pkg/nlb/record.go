package nlb

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// recordOf returns what is applied once a pass has followed the annotations. On an existing load balancer whose listeners the Service
// does not manage only tags count.
func recordOf(loadBalancerID string, svc *corev1.Service, params annotation.Params, reused bool) driver.Record {
	record := driver.Record{LoadBalancerID: loadBalancerID}
	record.TagKeys, record.Annotations = groupCloud{}.TagKeys(params), chosenName(params)
	if reused {
		record.Joined = joinedBy(params)
	}
	if reused && !params.OverridesListeners() {
		return record.Sorted()
	}
	record.Annotations = append(record.Annotations, params.Applied(annotation.NLBTable())...)
	record.SecurityGroups = annotation.ListOf(params, annotation.SecurityGroupIDs)
	record.Certificates = annotation.ListOf(params, annotation.AdditionalCertIDs)
	if len(annotation.SourceRangesOf(svc)) > 0 {
		record.Annotations = append(record.Annotations, driver.RecordedSourceRanges)
	}
	return record.Sorted()
}

// recordInGroup is [recordOf] for a Service that shares its NLB with those of its group. Only the one that leads decides on its attributes
// and tags.
func recordInGroup(loadBalancerID string, params annotation.Params, leads bool) driver.Record {
	record, rows := driver.Record{LoadBalancerID: loadBalancerID}, annotation.NLBTable()
	if leads {
		record.TagKeys, record.SecurityGroups = groupCloud{}.TagKeys(params), annotation.ListOf(params, annotation.SecurityGroupIDs)
	} else {
		rows = slices.DeleteFunc(slices.Clone(rows), isOfBalancer)
	}
	record.Annotations = append(chosenName(params), params.Applied(rows)...)
	record.Certificates = annotation.ListOf(params, annotation.AdditionalCertIDs)
	return record.Sorted()
}

// joinedBy are the server groups of others that the annotations name.
func joinedBy(params annotation.Params) []string {
	ids, _ := annotation.VGroupsOf(params)
	return slices.Compact(slices.Sorted(maps.Values(ids)))
}

// chosenName says that the status shows a name that the author of the Service has chosen: [showsName] takes it for no proof.
func chosenName(params annotation.Params) []string {
	if !params.Has(annotation.Hostname) {
		return nil
	}
	return []string{string(annotation.Hostname)}
}

// isOfBalancer reports whether an annotation concerns the NLB itself.
func isOfBalancer(row annotation.Row) bool {
	return slices.ContainsFunc(annotation.NLBInstanceAnnotations(), func(r annotation.Row) bool { return r.Suffix == row.Suffix })
}

// loadRecord returns what was applied to the load balancer.
func loadRecord(remembered *driver.Record, svc *corev1.Service, known observed) driver.Record {
	record, ok := driver.LoadRecord(remembered, svc, known.nlbID(), known.Presence.Reused())
	if !ok { // the Service leaves the load balancer, or is back on it before its tags there were removed
		record.TagKeys = slices.Concat(known.leftTags[known.nlbID()], lastRecord(remembered, svc).Left[known.nlbID()])
	}
	record.LoadBalancerID, record.Left = cmp.Or(record.LoadBalancerID, known.nlbID()), known.leftTags
	return record
}

// lastRecord returns the last Record of the Service, whatever load balancer it is about.
func lastRecord(remembered *driver.Record, svc *corev1.Service) driver.Record {
	if remembered != nil {
		return *remembered
	}
	record, _ := driver.RecordOn(svc)
	return record
}
