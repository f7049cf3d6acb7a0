package deploy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestWhatShowsThatAnNLBIsFull: the cloud refuses a server of a group whose listener it took without servers, for as long as that counts, and nothing else.
func TestWhatShowsThatAnNLBIsFull(t *testing.T) {
	t.Parallel()
	refused := &alicloud.Error{Code: "QuotaExceeded.QuotaInsufficient"}
	withServers, empty := &model.Group{Servers: make([]alicloud.NLBServer, 1)}, &model.Group{}
	withServers.ID, empty.ID = "sgp-1", "sgp-1"
	type creation struct {
		group *model.Group
		err   error
	}
	for name, test := range map[string]struct {
		creations []creation
		after     time.Duration
		full      bool
	}{
		"refused with servers, taken without":         {[]creation{{withServers, refused}, {empty, nil}}, 0, true},
		"the same, minutes ago":                       {[]creation{{withServers, refused}, {empty, nil}}, 10 * time.Minute, false},
		"refused with servers, not tried without":     {[]creation{{withServers, refused}}, 0, false},
		"refused with servers, taken with them":       {[]creation{{withServers, refused}, {withServers, nil}}, 0, false},
		"refused with and without servers":            {[]creation{{withServers, refused}, {empty, refused}, {empty, nil}}, 0, false},
		"refused for another cause a short while ago": {[]creation{{empty, refused}, {withServers, refused}, {empty, nil}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &Applier{Memory: &Memory{}, Model: &model.Model{}, Doubts: map[model.Part]string{}}
				for _, c := range test.creations {
					a.noteCrowded(c.group, c.err)
				}
				time.Sleep(test.after)
				for range 2 {
					a.Full = false
					if a.noteFull(empty.ID, refused); a.Full != test.full {
						t.Errorf("full: %v, want %v", a.Full, test.full)
					}
				}
			})
		})
	}
}
