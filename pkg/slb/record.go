package slb

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// recordedSourceRanges stands in [Record.Annotations] for the source ranges of the Service, which may be in its spec. It says
// that the Service may have an access control list.
const recordedSourceRanges = "loadBalancerSourceRanges"

// Record is what was applied to a CLB for a Service's annotations. It tells what left the annotations from what a user set by
// hand, also after a restart: the first goes back to its default or is removed, the second stays.
//
// Tag keys and domains are recorded before they are written, annotations once they are applied. A crash in between leaves one
// key too many in the Record, never one too few. While something of a plan failed, the Record only grows.
type Record struct {
	// LoadBalancerID is the CLB that the Record is about; for any other CLB nothing of it counts. It is empty for a CLB that is
	// about to be created.
	LoadBalancerID string `json:"loadBalancer"`
	// Annotations are the names of the annotations that were applied, without prefix, as far as their removal reverts something.
	Annotations []string `json:"annotations,omitempty"`
	// TagKeys are the keys that were written for the annotation additional-resource-tags.
	TagKeys []string `json:"tags,omitempty"`
	// Domains are those that extensions were created for, in lower case.
	Domains []string `json:"domains,omitempty"`

	// legacyDomains are digests of domains, see [legacyRecord]; [Record.resolveDomains] replaces them.
	legacyDomains []string
	// legacyTags says that the CLB carries the tags of an earlier version.
	legacyTags bool
}

// recordOf returns what is applied once a pass has followed the annotations. On an existing CLB (annotation id) only what acts
// on listeners counts, and only where the Service manages them: the attributes of the CLB itself are its owner's.
// sourceRanges says that the Service has, or is to have, an access control list.
func recordOf(loadBalancerID string, params annotation.Params, reused, sourceRanges bool) Record {
	record := Record{LoadBalancerID: loadBalancerID}
	rows := annotation.Table()
	if reused {
		rows = annotation.ListenerTable()
	}
	if !reused || params.OverridesListeners() {
		for _, row := range rows {
			if row.Code != "" && params.Has(row.Suffix) && !params.Reverted[row.Suffix] {
				record.Annotations = append(record.Annotations, string(row.Suffix))
			}
		}
		for _, extension := range annotation.DomainExtensionsOf(params) {
			record.Domains = append(record.Domains, extension.Domain)
		}
	}
	if sourceRanges {
		record.Annotations = append(record.Annotations, recordedSourceRanges)
	}
	for _, tag := range annotation.TagsOf(params) {
		record.TagKeys = append(record.TagKeys, tag.Key)
	}
	return record.sorted()
}

// keeping returns the Record with what stays applied because nobody knows whether its user still wants it: its annotation is not
// accepted.
func (r Record) keeping(before Record, params annotation.Params) Record {
	overrideRefused := params.Refused(annotation.ForceOverrideListeners)
	for _, name := range before.Annotations {
		if overrideRefused || params.Refused(annotation.Suffix(name)) {
			r.Annotations = append(r.Annotations, name)
		}
	}
	if params.Refused(annotation.AdditionalTags) {
		r.TagKeys = append(r.TagKeys, before.TagKeys...)
	}
	if overrideRefused || params.Refused(annotation.DomainExtensions) {
		r.Domains = append(r.Domains, before.Domains...)
	}
	return r.sorted()
}

// intent returns what must be recorded before it is written.
func (r Record) intent() Record {
	r.Annotations = slices.DeleteFunc(slices.Clone(r.Annotations), func(name string) bool { return name != recordedSourceRanges })
	return r
}

// isAbout reports whether the Record is about the CLB, nil for one that is about to be created. A Record that was written before
// the creation is about any CLB of ours.
func (r Record) isAbout(actual *model.Model) bool {
	switch {
	case actual == nil:
		return r.LoadBalancerID == ""
	case r.LoadBalancerID == "":
		return !actual.Reused
	default:
		return r.LoadBalancerID == actual.LoadBalancer.ID
	}
}

// of returns the Record as that of the CLB.
func (r Record) of(actual *model.Model) Record {
	r.LoadBalancerID, r.legacyTags = "", false
	if actual != nil {
		r.LoadBalancerID, r.legacyTags = actual.LoadBalancer.ID, !actual.Reused && hasLegacyTags(&actual.LoadBalancer)
	}
	return r
}

// and returns what either Record holds.
func (r Record) and(other Record) Record {
	r.Annotations = slices.Concat(r.Annotations, other.Annotations)
	r.TagKeys = slices.Concat(r.TagKeys, other.TagKeys)
	r.Domains = slices.Concat(r.Domains, other.Domains)
	return r.sorted()
}

// covers reports whether everything in other is in the Record.
func (r Record) covers(other Record) bool {
	return r.LoadBalancerID == other.LoadBalancerID && containsAll(r.Annotations, other.Annotations) &&
		containsAll(r.TagKeys, other.TagKeys) && containsAll(r.Domains, other.Domains)
}

// after returns the Record after a plan that leads to wanted. refused are annotations that the cloud refused to apply: their
// removal must not set a default that nobody asked for.
func (r Record) after(wanted Record, failed bool, refused []string) Record {
	if !failed {
		return wanted
	}
	wanted.Annotations = diff.NotIn(wanted.Annotations, refused)
	return r.and(wanted)
}

func (r Record) empty() bool { return len(r.Annotations)+len(r.TagKeys)+len(r.Domains) == 0 }

func (r Record) sorted() Record {
	for _, list := range []*[]string{&r.Annotations, &r.TagKeys, &r.Domains} {
		sorted := slices.Compact(slices.Sorted(slices.Values(*list)))
		*list = sorted
	}
	return r
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// resolveDomains puts names in the place of digests, as far as there is an extension of that name or the annotation asks for
// one. Any other needs no removal.
func (r Record) resolveDomains(actual *model.Model, params annotation.Params) Record {
	if len(r.legacyDomains) == 0 {
		return r
	}
	candidates := annotation.DomainExtensionsOf(params)
	for i := range actual.Listeners {
		candidates = append(candidates, actual.Listeners[i].Extensions...)
	}
	for _, extension := range candidates {
		if domain := strings.ToLower(extension.Domain); slices.Contains(r.legacyDomains, digest(domain)) {
			r.Domains = append(r.Domains, domain)
		}
	}
	r.legacyDomains = nil
	return r.sorted()
}
