package slb

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
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

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are not ours to write on an existing CLB: any tag where the
// Service does not manage the listeners, and those that the CLB had before. Overwriting them could also grant or take permissions that
// depend on tags.
func (e *engine) keepOwnersTags(desired *model.Model, record *service.Record, applied service.Record, actual *model.Model) ([]problem.Problem, error) {
	if actual == nil || !actual.Reused || len(desired.LoadBalancer.Tags) <= 1 && len(record.TagKeys) == 0 {
		return nil, nil
	}
	written, err := e.writtenTags(actual.LoadBalancer.ID)
	if err != nil {
		return nil, err
	}
	owners := ownersTags{lb: &actual.LoadBalancer, written: written.Insert(applied.TagKeys...), override: desired.Override}
	record.TagKeys = slices.DeleteFunc(slices.Clone(record.TagKeys), owners.has)
	var kept []string
	desired.LoadBalancer.Tags = slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), func(tag alicloud.Tag) bool {
		if tag.Key == mark.TagReused {
			return false
		}
		if owners.differs(tag) {
			kept = append(kept, tag.Key)
		}
		return owners.has(tag.Key) || !desired.Override
	})
	if len(kept) == 0 {
		return nil, nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonAnnotationNoEffect, "%s: tags %s are not set: those of an existing CLB are its owner's",
		annotation.AdditionalTags, strings.Join(kept, ", "))}, nil
}

// ownersTags are the tags of an existing CLB that are its owner's to write.
type ownersTags struct {
	lb *alicloud.LoadBalancer
	// written are the keys that Services of the cluster wrote.
	written sets.Set[string]
	// override says that the Service manages the listeners.
	override bool
}

// has reports whether a tag is the owner's.
func (o ownersTags) has(key string) bool {
	_, there := o.lb.Tag(key)
	return !o.written.Has(key) && (there || !o.override)
}

// differs reports whether a tag is the owner's and not as the Service wants it.
func (o ownersTags) differs(wanted alicloud.Tag) bool {
	value, there := o.lb.Tag(wanted.Key)
	return o.has(wanted.Key) && (!there || value != wanted.Value)
}

// writtenTags returns the keys of tags that Services of the cluster wrote to the CLB.
func (e *engine) writtenTags(id string) (sets.Set[string], error) {
	services, err := e.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	keys := sets.New[string]()
	for _, svc := range services {
		if record, ok := service.RecordOn(svc); ok && record.LoadBalancerID == id {
			keys.Insert(record.TagKeys...)
		}
	}
	return keys, nil
}
