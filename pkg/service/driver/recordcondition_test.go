package driver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRecordIsBounded: what an author asks for, and what stays over from what the cloud refused, makes no Record that the API server
// refuses. Which load balancers and server groups the Service has something on, and what it creates, is never left out.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	long := func(n int) (list []string) {
		for i := range n / 20 {
			list = append(list, fmt.Sprintf("name-%011d", i)) // 20 bytes with quotes and comma
		}
		return list
	}
	needed := Record{
		LoadBalancerID: "lb-1", Annotations: []string{"spec"}, Joined: long(8 << 10), Group: "c1/default/edge", Leaving: []string{"lb-0"},
		Shows: "lb-0", Made: "lb-1", Existing: true, UID: "uid",
		Creation: &Creation{Token: "token", Parameters: json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)},
	}
	for name, fill := range map[string]struct {
		fill     func(*Record)
		complete bool
	}{
		"nothing else":      {func(*Record) {}, true},
		"some of all":       {func(r *Record) { r.Domains, r.TagKeys, r.Certificates = long(2<<10), long(2<<10), long(2<<10) }, true},
		"domains":           {func(r *Record) { r.Domains = long(30 << 10) }, false},
		"tags":              {func(r *Record) { r.TagKeys = long(30 << 10) }, false},
		"certificates":      {func(r *Record) { r.Certificates = long(30 << 10) }, false},
		"security groups":   {func(r *Record) { r.SecurityGroups = long(30 << 10) }, false},
		"tags on left ones": {func(r *Record) { r.Left = map[string][]string{"lb-0": long(30 << 10)} }, false},
		"all": {func(r *Record) {
			r.Domains, r.TagKeys, r.Certificates, r.SecurityGroups = long(9<<10), long(9<<10), long(9<<10), long(9<<10)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := needed
			fill.fill(&record)
			if _, _, complete := record.Bounded(); complete != fill.complete {
				t.Errorf("complete: %v", complete)
			}
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: needed.UID}}
			record.StoreChange()(svc)
			if n := len(meta.FindStatusCondition(svc.Status.Conditions, ConditionWritten).Message); n > maxRecord {
				t.Errorf("%d bytes", n)
			}
			found, _ := RecordOn(svc)
			found.UID = needed.UID
			if !fill.complete {
				found.Domains, found.TagKeys, found.Certificates, found.SecurityGroups, found.Left = nil, nil, nil, nil, nil
				if diff := cmp.Diff(needed.Sorted(), found); diff != "" {
					t.Errorf("needed (-want +got):\n%s", diff)
				}
			} else if !found.CoversRecord(record) {
				t.Errorf("Record %+v", found)
			}
		})
	}
}
