package leadership

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestFindLeader: a holder that renews its Lease leads, whatever its clock says, and one that does not has been dead for that long.
func TestFindLeader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		skew          time.Duration
		renews, leads bool
	}{
		"same clock": {0, true, true}, "its clock is behind": {10 * time.Minute, true, true},
		"its clock is ahead": {-10 * time.Minute, true, true},
		"dead":               {time.Minute, false, false}, "dead, and its clock is ahead": {-time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				leases := fake.NewClientset(officialLease(test.skew)).CoordinationV1().Leases(namespace)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range 3 {
						time.Sleep(2 * time.Second)
						if !test.renews {
							continue
						}
						if _, err := leases.Update(t.Context(), officialLease(test.skew), metav1.UpdateOptions{}); err != nil {
							t.Error(err)
						}
					}
				}()
				found, err := FindLeader(t.Context(), leases, OfficialLease, 4*time.Second)
				if err != nil || found.Leads != test.leads || found.Holder != "node-1_official" {
					t.Errorf("%+v, %v; want leads = %t", found, err, test.leads)
				}
				<-done
			})
		})
	}
	if found, err := FindLeader(t.Context(), fake.NewClientset().CoordinationV1().Leases(namespace), OfficialLease,
		time.Hour); err != nil || found.Leads || found.Holder != "" {
		t.Errorf("without a Lease: %+v, %v", found, err)
	}
}
