package service

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// ConditionWritten on a Service holds, as JSON in its message, the [Record] of what was applied to its load balancer.
const ConditionWritten = "service.alibabacloud.com/LoadBalancerWritten"

// ReasonWritten is the reason of the condition that holds a [Record].
const ReasonWritten = "Remembered"

// RecordOn returns the Record that the Service holds. One that somebody else wrote, and that cannot be read, counts for nothing. Neither
// does one of another Service, from which this one was restored: what it names may be that of another cluster, where nothing may be left or
// deleted.
func RecordOn(svc *corev1.Service) (Record, bool) {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten)
	if condition == nil {
		return Record{}, false
	}
	var found Record
	if err := json.Unmarshal([]byte(condition.Message), &found); err != nil || found.UID != svc.UID {
		return Record{}, false
	}
	found.UID = ""
	isOurs := func(key string) bool { return annotation.ReservedTags.Has(key) } // no annotation sets it, so that none can have it removed
	found.TagKeys = slices.DeleteFunc(found.TagKeys, isOurs)
	for id, keys := range found.Left {
		found.Left[id] = slices.DeleteFunc(keys, isOurs)
	}
	return found.Sorted(), true
}

// changesOnlyRecord reports whether two versions of a Service differ in the Record alone. A pass writes that in its middle, before it
// creates a load balancer: the event would have the pass made anew, again and again while the cloud refuses.
func changesOnlyRecord(before, after *corev1.Service) bool {
	was, is := meta.FindStatusCondition(before.Status.Conditions, ConditionWritten), meta.FindStatusCondition(after.Status.Conditions,
		ConditionWritten)
	if equality.Semantic.DeepEqual(was, is) {
		return false
	}
	old, now := before.DeepCopy(), after.DeepCopy()
	for _, svc := range []*corev1.Service{old, now} {
		svc.ResourceVersion, svc.ManagedFields = "", nil
		if meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionWritten); len(svc.Status.Conditions) == 0 {
			svc.Status.Conditions = nil
		}
	}
	return equality.Semantic.DeepEqual(old, now)
}

// RecordSays reports whether a text is in the Record that the Service holds, without reading all of it.
func RecordSays(svc *corev1.Service, text string) bool {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten)
	return condition != nil && strings.Contains(condition.Message, text)
}

// storeChange returns the change that writes the Record to the Service. An empty one needs no condition.
func (r Record) storeChange() func(*corev1.Service) {
	return func(svc *corev1.Service) {
		if r.isEmpty() {
			meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionWritten)
			return
		}
		r.UID = svc.UID
		text, err := json.Marshal(r)
		if err != nil {
			return // strings can always be encoded
		}
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: ReasonWritten, Message: string(text),
		})
	}
}

// storeFirstIntent records what the first pass over a Service is about to write, in the patch that adds the finalizer.
func storeFirstIntent(svc *corev1.Service, engine Engine) {
	if _, ok := RecordOn(svc); ok {
		return
	}
	params, _ := engine.Params(svc)
	if params.Invalid {
		return
	}
	if intent := engine.Intent(svc, params); !intent.isEmpty() {
		intent.storeChange()(svc)
	}
}
