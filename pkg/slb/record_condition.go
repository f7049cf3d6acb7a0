package slb

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// ConditionWritten on a Service holds, as JSON in its message, the [Record] of what was applied to its CLB.
const ConditionWritten = "service.alibabacloud.com/LoadBalancerWritten"

const reasonWritten = "Remembered"

// recordOn returns the Record that the Service holds. One that somebody else wrote, and that cannot be read, counts for nothing.
func recordOn(svc *corev1.Service) (Record, bool) {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten)
	if condition == nil {
		return Record{}, false
	}
	var found struct {
		Record
		// Applied are codes in place of names: versions before this one wrote them.
		Applied []string `json:"applied"`
	}
	if err := json.Unmarshal([]byte(condition.Message), &found); err != nil {
		return Record{}, false
	}
	found.Annotations = append(found.Annotations, namesOfCodes(found.Applied)...)
	return found.sorted(), true
}

// loadRecord returns the Record of a CLB: that of this process, because the cache may lag behind what it wrote, else that of
// the Service, else what an earlier version wrote to tags. Without any, nothing is reverted: the CLB was adopted.
func loadRecord(remembered *Record, svc *corev1.Service, actual *model.Model) Record {
	candidates := []*Record{remembered}
	if written, ok := recordOn(svc); ok {
		candidates = append(candidates, &written)
	}
	for _, candidate := range candidates {
		if candidate != nil && candidate.isAbout(actual) {
			return candidate.of(actual)
		}
	}
	if actual == nil || actual.Reused {
		return Record{}.of(actual)
	}
	return legacyRecord(&actual.LoadBalancer).of(actual)
}

// store returns the change that writes the Record to the Service. An empty one needs no condition, unless the tags of an
// earlier version would count again without it.
func (r Record) store() func(*corev1.Service) {
	return func(svc *corev1.Service) {
		if r.empty() && !r.legacyTags {
			meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionWritten)
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			return // strings can always be encoded
		}
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: reasonWritten, Message: string(text),
		})
	}
}

// storeFirstIntent records what the first pass over a Service is about to write, in the patch that adds the finalizer.
func storeFirstIntent(svc *corev1.Service) {
	if _, ok := recordOn(svc); ok {
		return
	}
	params, _ := annotation.Of(svc)
	if params.Invalid {
		return
	}
	id := params.Get(annotation.LoadBalancerID)
	if intent := recordOf(id, params, id != "", len(annotation.SourceRangesOf(svc)) > 0).intent(); !intent.empty() {
		intent.store()(svc)
	}
}
