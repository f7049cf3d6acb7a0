package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRecordOfARestoredService: a Service that was restored from a backup has another UID than the one that its Record is about. The Record
// counts for the latter alone, and one that does not say whose it is for nobody: somebody else wrote it.
func TestRecordOfARestoredService(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]Record{
		"tags":              {LoadBalancerID: "lb-a", TagKeys: []string{"team"}},
		"in a group":        {LoadBalancerID: "lb-a", Group: "c1/default/edge"},
		"leaves":            {LoadBalancerID: "lb-a", Leaving: []string{"lb-b"}},
		"tags on left ones": {LoadBalancerID: "lb-a", Left: map[string][]string{"lb-b": {"team"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "first"}}
			record.store()(svc)
			if found, ok := RecordOn(svc); !ok || !found.covers(record) {
				t.Errorf("the Service itself has %+v, %v", found, ok)
			}
			if svc.UID = "restored"; hasRecord(svc) {
				t.Error("the Record counts for a restored Service")
			}
		})
	}
	for _, message := range []string{
		`{"loadBalancer":"lb-a","tags":["team"]}`, `{"loadBalancer":"lb-a","group":"c1/default/edge"}`, "no JSON",
	} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "first"}}
		meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{Type: ConditionWritten, Status: metav1.ConditionTrue, Reason: ReasonWritten, Message: message})
		if hasRecord(svc) {
			t.Errorf("%s counts", message)
		}
	}
}

func hasRecord(svc *corev1.Service) bool {
	_, ok := RecordOn(svc)
	return ok
}
