package slb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tagWritten holds the digests of the tag keys that were written for the annotation additional-resource-tags, so that keys
// that leave the annotation can be told from tags of the user's own, also after a restart.
const tagWritten = "alicloud-ccm.tags"

// digestLength: with the dots, the digests of all keys fit into the value of one tag.
const digestLength = 6

// tagHistory is what earlier passes wrote for the annotation additional-resource-tags.
type tagHistory struct {
	// before are the digests of the keys that were written.
	before []string
	// digests are those of the keys that this pass writes, joined.
	digests string
	// tag is what the tag is to hold, empty for no tag.
	tag string
}

// writtenTags compares the annotation with what was written before. The rules are those of [appliedHistory]: a CLB that
// was adopted gets no tag with its first pass, a CLB that its user made never: there the Service remembers.
func (r *Reconciler) writtenTags(svc *corev1.Service, known *memory, params Params) (h tagHistory, err error) {
	h.digests = digestsOf(additionalTags(params))
	if known.actual == nil {
		h.tag = h.digests
		return h, nil
	}
	if known.actual.Reused {
		h.before, err = r.removableTags(svc, *known.written, h.digests)
		return h, err
	}
	before, tagged := known.actual.LoadBalancer.Tag(tagWritten)
	if !tagged {
		before = known.tags
	}
	_, ours := known.actual.LoadBalancer.Tag(tagApplied)
	if tagged || ours || before != "" && before != h.digests {
		h.tag = h.digests
	}
	if before != "" {
		h.before = strings.Split(before, ".")
	}
	return h, nil
}

// sharedTags returns the digests of the tag keys that other Services on a CLB of its user's ask for. They stay when this
// Service asks for them no more.
func (r *Reconciler) sharedTags(svc *corev1.Service, loadBalancerID string) ([]string, error) {
	services, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	var shared []string
	for _, other := range services {
		if nameOf(other) == nameOf(svc) || !r.opts.Config.serves(other) {
			continue
		}
		params, _ := ParseParams(other.Annotations)
		if params.Get(LoadBalancerID) == loadBalancerID {
			theirs := writtenFor(loadBalancerID, params)
			shared = append(shared, theirs.tagDigests()...)
		}
	}
	return shared, nil
}

// removableTags returns the digests of the tag keys on a CLB of its user's that may go when they are not wanted: this
// Service had them written, and no other one asks for them.
func (r *Reconciler) removableTags(svc *corev1.Service, before written, wanted string) ([]string, error) {
	digests := before.tagDigests()
	if containsAll(strings.Split(wanted, "."), digests) {
		return digests, nil // nothing goes: who else wants them does not matter
	}
	shared, err := r.sharedTags(svc, before.LoadBalancerID)
	return slices.DeleteFunc(digests, func(d string) bool { return slices.Contains(shared, d) }), err
}

func digestsOf(tags []alicloud.Tag) string {
	var digests []string
	for _, tag := range tags {
		digests = append(digests, digest(tag.Key))
	}
	slices.Sort(digests)
	return strings.Join(digests, ".")
}

func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])[:digestLength]
}

// untag removes the tags that were written for the annotation and have left it. It comes before the tag that remembers
// them changes: after a crash in between, a key too many is remembered, and none too few.
func (d *differ) untag(want []alicloud.Tag, have *alicloud.LoadBalancer) {
	var keys []string
	for _, tag := range have.Tags {
		wanted := slices.ContainsFunc(want, func(t alicloud.Tag) bool { return t.Key == tag.Key })
		written := !reservedTags.Has(tag.Key) && slices.Contains(d.desired.WrittenTags, digest(tag.Key))
		if !wanted && (written || tag.Key == tagWritten) {
			keys = append(keys, tag.Key)
		}
	}
	if len(keys) > 0 {
		d.step(Step{Op: OpUntag, Target: targetLoadBalancer, Before: strings.Join(keys, " "), tagKeys: keys})
	}
}
