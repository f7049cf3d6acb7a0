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

// maxRecord is how many bytes a [Record] has. The API server refuses a condition of more than 32 kB, and with it the whole status.
const maxRecord = 24 << 10

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
		_, text, _ := r.Bounded()
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
			Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: ReasonWritten, Message: text,
		})
	}
}

// Bounded returns the Record without what has no room, its text, and whether it is complete. Only what says which settings to take back can
// be missing: those stay then. Where the Service has a load balancer, listeners or backend servers, and what it creates, is always there.
func (r Record) Bounded() (bounded Record, text string, complete bool) {
	text, complete = r.encode(), true
	for _, drop := range []func(*Record){
		func(r *Record) { r.Left = nil }, func(r *Record) { r.Domains = nil }, func(r *Record) { r.Certificates = nil },
		func(r *Record) { r.TagKeys = nil }, func(r *Record) { r.SecurityGroups = nil },
	} {
		if len(text) <= maxRecord {
			break
		}
		drop(&r)
		text, complete = r.encode(), false
	}
	return r, text, complete
}

func (r Record) encode() string {
	text, _ := json.Marshal(r) //nolint:errcheck,errchkjson // strings can always be encoded
	return string(text)
}
