package vpcroute

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestRefusedKeyIsReplaced: what the cloud refused because of the key is tried again within the time of a refusal, whether another one is in
// use or the key gets its permission back; tables are read within a minute.
func TestRefusedKeyIsReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  string
		within time.Duration
	}{
		"reads and writes": {`{"action":"*","code":"InvalidAccessKeyId.NotFound","status":404,"times":0}`, waits.RouteRefused},
		"reads": {`{"action":"DescribeRouteEntryList","code":"Forbidden.RAM","status":403,"times":0}`,
			waits.TableUnread + 15*time.Second},
		"reads, right region again": {`{"action":"DescribeRouteEntryList","code":"InvalidRegionId.NotFound","status":404,"times":0}`,
			waits.TableUnread + 15*time.Second},
		"writes":     {`{"action":"CreateRouteEntries","code":"Forbidden.RAM","status":403,"times":0}`, waits.RouteRefused},
		"interfaces": {`{"action":"DescribeNetworkInterfaces","code":"Forbidden.RAM","status":403,"times":0}`, waits.RouteRefused},
		"vSwitches":  {`{"action":"DescribeVSwitches","code":"InvalidAccessKeyId.Inactive","status":403,"times":0}`, waits.RouteRefused},
		"secret":     {`{"action":"*","code":"SignatureDoesNotMatch","status":400,"times":0}`, waits.RouteRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, emulator.Options{}, 3)
				stop := s.start(func(factory informers.SharedInformerFactory) func(context.Context) {
					opts := s.options(factory)
					controller, err := NewController(opts, NewWriter(opts))
					if err != nil {
						t.Fatal(err)
					}
					return controller.Run
				})
				defer stop()
				s.account.Fault(test.fault)
				nodes, want := nodesOf(3)
				s.create(nodes...)
				time.Sleep(11 * time.Minute) // no multiple of what refusals wait
				before := s.account.Last()
				time.Sleep(10 * time.Minute)
				if n := s.account.Count(before); n > 30 {
					t.Errorf("%d calls in ten minutes with a key that is refused", n)
				}
				s.account.ClearFaults()
				time.Sleep(test.within)
				if diff := cmp.Diff(want, s.account.Routes(testTable)); diff != "" {
					t.Errorf("routes %s later (-want +got):\n%s", test.within, diff)
				}
				s.network("node-0", "node-1", "node-2")
			})
		})
	}
}
