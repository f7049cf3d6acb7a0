package deploy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestServersKeptOutByAQuota: a server that a quota keeps out is tried again less and less often, and at once when the same server leaves
// another group, or another server one of the same load balancer.
func TestServersKeptOutByAQuota(t *testing.T) {
	t.Parallel()
	quota := &alicloud.Error{Code: "QuotaExceeded.ServersNum"}
	kept, other := alicloud.NLBServer{}, alicloud.NLBServer{}
	kept.ID, other.ID = "i-kept", "i-other"
	for name, test := range map[string]struct {
		err   error
		tries int
		room  func(*Memory)
	}{
		"a quota":                         {quota, 9, nil}, // after 5, 10, 20, 40, 60 ... minutes
		"another reason":                  {&alicloud.Error{Code: "ResourceNotFound.BackendServer"}, 9, nil},
		"the server leaves another group": {quota, 72, func(m *Memory) { m.noteRoom([]model.Group{{}}, []alicloud.NLBServer{kept}) }},
		"another server leaves the load balancer": {quota, 72, func(m *Memory) {
			m.noteRoom([]model.Group{{NLBGroup: alicloud.NLBGroup{ID: "sgp-1"}}}, []alicloud.NLBServer{other})
		}},
		"another server leaves another load balancer": {quota, 9, func(m *Memory) {
			m.noteRoom([]model.Group{{NLBGroup: alicloud.NLBGroup{ID: "sgp-2"}}}, []alicloud.NLBServer{other})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var m Memory
				tries := 0
				for range 72 {
					if wanted, _ := m.acceptableServers("sgp-1", []alicloud.NLBServer{kept}); len(wanted) > 0 {
						tries++
						m.refuseServer("sgp-1", kept.NLBServerKey, test.err)
					}
					if test.room != nil {
						test.room(&m)
					}
					time.Sleep(5 * time.Minute)
				}
				if tries != test.tries {
					t.Errorf("tried %d times in six hours, want %d", tries, test.tries)
				}
			})
		})
	}
}
