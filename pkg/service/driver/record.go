package driver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// RecordedSourceRanges stands in [Record.Annotations] for the source ranges of the Service, which may be in its spec. It says that
// the Service may have an access control list.
const RecordedSourceRanges = "loadBalancerSourceRanges"

// Record is what was applied to a load balancer for a Service's annotations. It separates what left the annotations from what a user
// set by hand, also after a restart: the first goes back to its default or is removed, the second stays.
//
// Tag keys, also those of Left, domains, security groups, certificates and server groups of others are recorded before they are written,
// annotations once they are applied. A crash in between leaves one key too many in the Record, never one too few. While something of a plan
// failed, the Record only grows.
type Record struct {
	// LoadBalancerID is the load balancer that the Record is about; for any other nothing of it counts. It is empty for one that
	// is about to be created.
	LoadBalancerID string `json:"loadBalancer"`
	// Annotations are the names of the annotations that were applied, without prefix, as far as their removal reverts something.
	Annotations []string `json:"annotations,omitempty"`
	// TagKeys are the keys that were written for the annotation additional-resource-tags.
	TagKeys []string `json:"tags,omitempty"`
	// Domains are those that extensions were created for, in lower case.
	Domains []string `json:"domains,omitempty"`
	// SecurityGroups are the ids of those that were joined for an annotation, Certificates those that were added to listeners for one.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	Certificates   []string `json:"certificates,omitempty"`
	// Joined are the ids of server groups of others that the Service has backend servers in.
	Joined []string `json:"joined,omitempty"`
	// Left are keys of tags that are still to be removed from existing load balancers which the Service was on before, by the id of those.
	Left map[string][]string `json:"left,omitempty"`
	// Group is the mark of the group of Services that the Service shares its load balancer with.
	Group string `json:"group,omitempty"`
	// Leaving are ids of load balancers, or marks of groups, that the Service has left and on which it may have something.
	Leaving []string `json:"leaving,omitempty"`
	// Shows is the id of the load balancer that the Service shows while it leaves others, empty until it shows the one that it moves to.
	Shows string `json:"shows,omitempty"`
	// Creation is a call that creates a load balancer, until its result is known, and Made the load balancer that the last such call made.
	// Unlike everything that the author of the Service can write, it proves that the load balancer is the Service's, or that of its group.
	Creation *Creation `json:"creation,omitempty"`
	Made     string    `json:"made,omitempty"`
	// Scheduler is the default of the listeners, which the policy and the kind of the backends choose, and with it whether weights are numbers
	// of endpoints. It is empty for a load balancer that was adopted, until a pass over it has succeeded: what such a pass finds stays.
	Scheduler string `json:"scheduler,omitempty"`
	// Existing says that the load balancer is one that the Service names by its id, so that it never becomes its own.
	Existing bool `json:"existing,omitempty"`
	// UID is that of the Service that a stored Record is about. Backup tools restore the status of a Service in another cluster, where
	// what it says of load balancers would have those of the first one deleted.
	UID types.UID `json:"uid,omitempty"`
}

// Intent returns what must be recorded before it is written.
func (r Record) Intent() Record {
	r.Annotations = slices.DeleteFunc(slices.Clone(r.Annotations), func(name string) bool { return name != RecordedSourceRanges })
	return r
}

// ShownBy returns the id of the load balancer that a Service shows as far as it says so itself, empty where it does not. Its status cannot
// say that: it may hold a name that the author of the Service chose, or an address that is not the load balancer's own.
func ShownBy(svc *corev1.Service) string {
	record, _ := RecordOn(svc)
	if id := record.LoadBalancerID; len(record.Leaving) == 0 && len(svc.Status.LoadBalancer.Ingress) > 0 &&
		svc.Labels[LabelLoadBalancerID] == id {
		// The label is written with the status: without it, the Record may be about a load balancer that the Service was about to move to.
		return id
	}
	return record.Shows
}

// Labeled returns the load balancer that the label of a Service names, empty where only its author can have written that: whoever can edit
// Services can also set it. Controllers write it with the status, and this one with a Record.
func Labeled(svc *corev1.Service) string {
	id := svc.Labels[LabelLoadBalancerID]
	record, _ := RecordOn(svc)
	if record.Denies(id) || record.LoadBalancerID == "" && len(svc.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	return id
}

// Denies reports whether the Record is about load balancers, of which the one with the id is none.
func (r Record) Denies(id string) bool {
	return r.LoadBalancerID != "" && id != r.LoadBalancerID && id != r.Made && id != r.Shows && !slices.Contains(r.Leaving, id)
}

// IsAbout reports whether the Record is about a load balancer; id is empty for one that is about to be created. A Record that was
// written before the creation is about any load balancer of ours.
func (r Record) IsAbout(id string, reused bool) bool {
	return r.LoadBalancerID == id || r.LoadBalancerID == "" && !reused
}

// LoadRecord returns the Record of a load balancer: that of this process, because the cache may lag behind what it wrote, else that of
// the Service. Without any it says false: nothing is reverted, the load balancer was adopted.
func LoadRecord(remembered *Record, svc *corev1.Service, id string, reused bool) (Record, bool) {
	if remembered != nil && remembered.IsAbout(id, reused) {
		return *remembered, true
	}
	if written, ok := RecordOn(svc); ok && written.IsAbout(id, reused) {
		return written, true
	}
	return Record{}, false
}

// Keeping returns the Record with what stays applied because nobody knows whether the author of the Service still wants it: its annotation
// is not accepted.
func (r Record) Keeping(before Record, params annotation.Params) Record {
	listeners := params.Refused(annotation.ForceOverrideListeners)
	for _, name := range before.Annotations {
		if listeners || params.Refused(annotation.Suffix(name)) {
			r.Annotations = append(r.Annotations, name)
		}
	}
	keep := func(into *[]string, values []string, kept bool) {
		if kept {
			*into = append(*into, values...)
		}
	}
	keep(&r.TagKeys, before.TagKeys, params.Refused(annotation.AdditionalTags))
	keep(&r.Domains, before.Domains, listeners || params.Refused(annotation.DomainExtensions))
	keep(&r.SecurityGroups, before.SecurityGroups, listeners || params.Refused(annotation.SecurityGroupIDs))
	keep(&r.Certificates, before.Certificates, listeners || params.Refused(annotation.AdditionalCertIDs))
	keep(&r.Joined, before.Joined, params.Refused(annotation.VGroupPort))
	return r.Sorted()
}

// Sorted returns the Record in its normal form.
func (r Record) Sorted() Record {
	for _, list := range []*[]string{&r.Annotations, &r.TagKeys, &r.Domains, &r.SecurityGroups, &r.Certificates, &r.Joined, &r.Leaving} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
	r.Left = maps.Clone(r.Left)
	for id, keys := range r.Left {
		r.Left[id] = slices.Compact(slices.Sorted(slices.Values(keys)))
	}
	return r
}

// MergeWith returns what either Record holds. One that is about no load balancer yet is about that of the other.
func (r Record) MergeWith(other Record) Record {
	r.LoadBalancerID = cmp.Or(r.LoadBalancerID, other.LoadBalancerID)
	r.Annotations = slices.Concat(r.Annotations, other.Annotations)
	r.TagKeys = slices.Concat(r.TagKeys, other.TagKeys)
	r.Domains = slices.Concat(r.Domains, other.Domains)
	r.SecurityGroups = slices.Concat(r.SecurityGroups, other.SecurityGroups)
	r.Certificates = slices.Concat(r.Certificates, other.Certificates)
	r.Joined = slices.Concat(r.Joined, other.Joined)
	left := maps.Clone(r.Left)
	for id, keys := range other.Left {
		if left == nil {
			left = map[string][]string{}
		}
		left[id] = slices.Concat(left[id], keys)
	}
	r.Left = left
	r.Leaving = slices.Concat(r.Leaving, other.Leaving)
	r.Existing = r.Existing || other.Existing
	r.Group, r.Shows = cmp.Or(other.Group, r.Group), cmp.Or(other.Shows, r.Shows)
	return r.Sorted()
}

// CoversRecord reports whether everything in other is in the Record.
func (r Record) CoversRecord(other Record) bool {
	return r.LoadBalancerID == other.LoadBalancerID && ContainsAll(r.Annotations, other.Annotations) &&
		ContainsAll(r.TagKeys, other.TagKeys) && ContainsAll(r.Domains, other.Domains) &&
		ContainsAll(r.SecurityGroups, other.SecurityGroups) && ContainsAll(r.Certificates, other.Certificates) &&
		ContainsAll(r.Joined, other.Joined) && r.coversLeft(other) &&
		ContainsAll(r.Leaving, other.Leaving) && (other.Group == "" || other.Group == r.Group)
}

func (r Record) coversLeft(other Record) bool {
	for id, keys := range other.Left {
		if !ContainsAll(r.Left[id], keys) {
			return false
		}
	}
	return true
}

// AfterPlan returns the Record after a plan that leads to wanted. refused are annotations that the cloud refused to apply: their
// removal must not set a default that nobody asked for. untagged are keys of tags that were removed, which nothing has to do again.
func (r Record) AfterPlan(wanted Record, failed bool, refused, untagged []string) Record {
	if !failed {
		return wanted
	}
	r.TagKeys = slices.DeleteFunc(slices.Clone(r.TagKeys), func(key string) bool { return slices.Contains(untagged, key) })
	wanted.Annotations = slices.DeleteFunc(slices.Clone(wanted.Annotations), func(name string) bool { return slices.Contains(refused, name) })
	return r.MergeWith(wanted)
}

// IsEmpty reports whether nothing needs to be stored.
func (r Record) IsEmpty() bool {
	return len(r.Annotations)+len(r.TagKeys)+len(r.Domains)+len(r.SecurityGroups)+len(r.Certificates)+len(r.Joined)+len(r.Left)+len(r.Leaving)+
		len(r.Group)+len(r.Made) == 0 && r.Creation == nil && !r.Existing
}

// ContainsAll reports whether all has each of some.
func ContainsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
