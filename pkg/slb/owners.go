package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// leadsHere reports whether an existing CLB whose listeners are its owner's sends traffic to the Service: one listener leads to a group of
// the Service, and none on a port of the Service leads elsewhere. Where it does not, its address in the status would have the nodes
// send what clients in the cluster send to the owner's port to the pods of the Service.
func leadsHere(ports []corev1.ServicePort, desired, actual *model.Model) bool {
	if desired == nil {
		return false
	}
	leads := false
	for i := range actual.Listeners {
		listener := &actual.Listeners[i]
		here := slices.ContainsFunc(desired.Groups, func(want model.Group) bool {
			have := actual.Group(want.Name)
			return have != nil && listener.GroupID != "" && have.ID == listener.GroupID
		})
		leads = leads || here
		if !here && slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return isOn(listener, port) }) {
			return false
		}
	}
	return leads
}

// isOn reports whether the listener answers on the port of a Service.
func isOn(listener *model.Listener, port corev1.ServicePort) bool {
	return listener.Port == int(port.Port) && (listener.Protocol == alicloud.ProtocolUDP) == (port.Protocol == corev1.ProtocolUDP)
}

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are the owner's of an existing CLB.
func (e *engine) keepOwnersTags(desired *model.Model, record *service.Record, applied service.Record, actual *model.Model) ([]problem.Problem, error) {
	if actual == nil || !actual.Reused || len(desired.LoadBalancer.Tags) <= 1 && len(record.TagKeys) == 0 {
		return nil, nil
	}
	owners, err := service.OwnersTagsOf(actual.LoadBalancer.ID, actual.LoadBalancer.Tags, desired.Override, e.services, applied)
	if err != nil {
		return nil, err
	}
	record.TagKeys = slices.DeleteFunc(slices.Clone(record.TagKeys), owners.Has)
	isMark := func(tag alicloud.Tag) bool { return tag.Key == mark.TagReused }
	marks := slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), func(tag alicloud.Tag) bool { return !isMark(tag) })
	ours, problems := owners.Ours(slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), isMark))
	desired.LoadBalancer.Tags = slices.Concat(marks, ours)
	return problems, nil
}
