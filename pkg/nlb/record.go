package nlb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// recordOf returns what is applied once a pass has followed the annotations. On an existing load balancer whose listeners the Service
// does not manage only tags count.
func recordOf(loadBalancerID string, svc *corev1.Service, params annotation.Params, reused bool) service.Record {
	record := service.Record{LoadBalancerID: loadBalancerID}
	for _, tag := range annotation.NLBTagsOf(params) {
		record.TagKeys = append(record.TagKeys, tag.Key)
	}
	if reused && !params.OverridesListeners() {
		return record.Sorted()
	}
	for _, row := range annotation.NLBTable() {
		if (row.Reverts || row.Code != "") && params.Has(row.Suffix) && !params.Reverted[row.Suffix] {
			record.Annotations = append(record.Annotations, string(row.Suffix))
		}
	}
	record.SecurityGroups = annotation.ListOf(params, annotation.SecurityGroupIDs)
	record.Certificates = annotation.ListOf(params, annotation.AdditionalCertIDs)
	if len(annotation.SourceRangesOf(svc)) > 0 {
		record.Annotations = append(record.Annotations, service.RecordedSourceRanges)
	}
	return record.Sorted()
}

// keeping returns the Record with what stays applied because nobody knows whether its user still wants it: its annotation is not
// accepted.
func keeping(record, before service.Record, params annotation.Params) service.Record {
	all := params.Refused(annotation.ForceOverrideListeners)
	for _, name := range before.Annotations {
		if all || params.Refused(annotation.Suffix(name)) {
			record.Annotations = append(record.Annotations, name)
		}
	}
	keep := func(into *[]string, suffix annotation.Suffix, values []string) {
		if all || params.Refused(suffix) {
			*into = append(*into, values...)
		}
	}
	keep(&record.TagKeys, annotation.AdditionalTags, before.TagKeys)
	keep(&record.SecurityGroups, annotation.SecurityGroupIDs, before.SecurityGroups)
	keep(&record.Certificates, annotation.AdditionalCertIDs, before.Certificates)
	return record.Sorted()
}

// loadRecord returns the Record of a load balancer: that of this process, because the cache may lag behind what it wrote, else that of
// the Service. Without any, nothing is reverted: the load balancer was adopted.
func loadRecord(remembered *service.Record, svc *corev1.Service, id string, reused bool) service.Record {
	if remembered != nil && remembered.IsAbout(id, reused) {
		return *remembered
	}
	if written, ok := service.RecordOn(svc); ok && written.IsAbout(id, reused) {
		return written
	}
	return service.Record{LoadBalancerID: id}
}

// notIn returns the elements that are not in the other list.
func notIn(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}
