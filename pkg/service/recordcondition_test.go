package service

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestRecordOfARestoredService: a Service that was restored from a backup has another UID than the one that its Record is about. The Record
// counts for the latter alone, and one that does not say whose it is for nobody: somebody else wrote it.
func TestRecordOfARestoredService(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]driver.Record{
		"tags":              {LoadBalancerID: "lb-a", TagKeys: []string{"team"}},
		"in a group":        {LoadBalancerID: "lb-a", Group: "c1/default/edge"},
		"leaves":            {LoadBalancerID: "lb-a", Leaving: []string{"lb-b"}},
		"tags on left ones": {LoadBalancerID: "lb-a", Left: map[string][]string{"lb-b": {"team"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "first"}}
			record.StoreChange()(svc)
			if found, ok := driver.RecordOn(svc); !ok || !found.CoversRecord(record) {
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
		meta.SetStatusCondition(&svc.Status.Conditions,
			metav1.Condition{Type: driver.ConditionWritten, Status: metav1.ConditionTrue, Reason: driver.ReasonWritten, Message: message})
		if hasRecord(svc) {
			t.Errorf("%s counts", message)
		}
	}
}

// TestForgedRecord: what somebody has written to the status of a Service neither removes tags that no annotation sets, nor holds a creation
// open for good.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "first"}}
	driver.Record{TagKeys: []string{mark.TagOwner, "team"}, Left: map[string][]string{"lb-b": {mark.TagGroup, "team"}}}.StoreChange()(svc)
	if found, _ := driver.RecordOn(svc); !slices.Equal(found.TagKeys, []string{"team"}) ||
		!slices.Equal(found.Left["lb-b"], []string{"team"}) {
		t.Errorf("Record %+v", found)
	}
	for begun, open := range map[time.Duration]bool{0: true, -time.Hour: false, time.Hour: false} {
		if (&driver.Creation{Begun: time.Now().Add(begun)}).Open() != open {
			t.Errorf("begun in %s: open %v", begun, !open)
		}
	}
}

func hasRecord(svc *corev1.Service) bool {
	_, ok := driver.RecordOn(svc)
	return ok
}
