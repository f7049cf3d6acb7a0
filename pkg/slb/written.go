package slb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// ConditionWritten on a Service that is on a CLB of its user's remembers what was written there for its annotations, so that
// what leaves them can be told from what is the user's own, also after a restart. On a CLB of our own, tags remember it; a
// CLB that several Services may share gets none.
const ConditionWritten = "service.alibabacloud.com/LoadBalancerWritten"

const reasonWritten = "Remembered"

// written is what the message of the condition holds.
type written struct {
	// LoadBalancerID is the CLB on which it was written. On any other one nothing of it counts.
	LoadBalancerID string `json:"loadBalancer"`
	// Applied are the codes of the annotations that were applied to listeners, see [tagApplied].
	Applied []string `json:"applied,omitempty"`
	// Tags are the keys that were written for the annotation additional-resource-tags.
	Tags []string `json:"tags,omitempty"`
	// Domains are those that extensions were made for.
	Domains []string `json:"domains,omitempty"`
}

// writtenFor returns what is on a CLB of the user's when the annotations have been followed.
func writtenFor(loadBalancerID string, params Params) written {
	w := written{LoadBalancerID: loadBalancerID}
	if params.overridesListeners() {
		w.Applied = listenerCodes(strings.Split(appliedCodes(params), "."))
		for _, extension := range extensionsOf(params) {
			w.Domains = append(w.Domains, extension.Domain)
		}
	}
	for _, tag := range additionalTags(params) {
		w.Tags = append(w.Tags, tag.Key)
	}
	return w.sorted()
}

// listenerCodes leaves the codes of annotations that act on listeners: the attributes of the CLB itself are its user's, and
// stay as they are when their annotation goes.
func listenerCodes(codes []string) []string {
	var kept []string
	for _, row := range listenerAnnotations() {
		if row.Code != "" && slices.Contains(codes, row.Code) {
			kept = append(kept, row.Code)
		}
	}
	return kept
}

// writtenOn returns what the Service remembers of a CLB.
func writtenOn(svc *corev1.Service, loadBalancerID string) written {
	none := written{LoadBalancerID: loadBalancerID}
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten)
	if condition == nil {
		return none
	}
	var found written
	if err := json.Unmarshal([]byte(condition.Message), &found); err != nil || found.LoadBalancerID != loadBalancerID {
		return none // what somebody else wrote there removes nothing
	}
	return found
}

// remember returns the change that has the Service remember it.
func (w written) remember() func(*corev1.Service) {
	return func(svc *corev1.Service) {
		if len(w.Applied)+len(w.Tags)+len(w.Domains) == 0 {
			meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionWritten)
			return
		}
		text, err := json.Marshal(w)
		if err != nil {
			return // strings can always be encoded
		}
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: reasonWritten, Message: string(text),
		})
	}
}

// and returns what either of them holds.
func (w written) and(other written) written {
	return written{
		LoadBalancerID: w.LoadBalancerID, Applied: slices.Concat(w.Applied, other.Applied),
		Tags: slices.Concat(w.Tags, other.Tags), Domains: slices.Concat(w.Domains, other.Domains),
	}.sorted()
}

// names reports whether all tags and domains of other are in it.
func (w written) names(other written) bool {
	return containsAll(w.Tags, other.Tags) && containsAll(w.Domains, other.Domains)
}

func (w written) sorted() written {
	for _, list := range []*[]string{&w.Applied, &w.Tags, &w.Domains} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return w
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// recall brings to mind what the Service remembers of a CLB of its user's. What this process wrote itself is known better:
// the cache may lag behind.
func (m *memory) recall(svc *corev1.Service) {
	if m.actual == nil || !m.actual.Reused {
		m.written = nil
		return
	}
	if id := m.actual.LoadBalancer.ID; m.written == nil || m.written.LoadBalancerID != id {
		found := writtenOn(svc, id)
		m.written = &found
	}
}

// rememberFirst has the Service remember the tags and domains that a plan is about to write, before it does: after a crash
// in between, one too many is remembered, and none too few. It returns the Service as it is then, nil when it is gone.
func (r *Reconciler) rememberFirst(ctx context.Context, svc *corev1.Service, known *memory, plan Plan, out *outcome) (*corev1.Service, error) {
	if out.written == nil || plan.Empty() || known.written.names(*out.written) {
		return svc, nil
	}
	both := known.written.and(*out.written)
	both.Applied = known.written.Applied // those are remembered once they are applied, as in the tag of a CLB of our own
	changed, err := r.kube.change(ctx, svc, both.remember())
	if err != nil {
		return nil, fmt.Errorf("remember what is written on CLB %s: %w", both.LoadBalancerID, err)
	}
	known.written = &both
	return changed, nil
}

// carriedOut notes what came of a plan. While something of it failed, what is remembered only grows.
func (m *memory) carriedOut(out *outcome, err error) {
	if out.written == nil || m.written == nil {
		return
	}
	if err != nil {
		more := m.written.and(*out.written)
		out.written = &more
	}
	m.written = out.written
}

// tagDigests are the keys as they are compared on a CLB of our own, domainDigests the domains.
func (w *written) tagDigests() []string {
	var digests []string
	for _, key := range w.Tags {
		digests = append(digests, digest(key))
	}
	return digests
}

func (w *written) domainDigests() []string {
	var extensions []alicloud.DomainExtension
	for _, domain := range w.Domains {
		extensions = append(extensions, alicloud.DomainExtension{Domain: domain})
	}
	return digestsOfDomains(extensions)
}
