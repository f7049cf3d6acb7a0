package driver

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// RecordSays reports whether a text is in the Record that the Service holds, without reading all of it.
func RecordSays(svc *corev1.Service, text string) bool {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten)
	return condition != nil && strings.Contains(condition.Message, text)
}

// StoreChange returns the change that writes the Record to the Service. An empty one needs no condition.
func (r Record) StoreChange() func(*corev1.Service) {
	return func(svc *corev1.Service) {
		if r.IsEmpty() {
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
