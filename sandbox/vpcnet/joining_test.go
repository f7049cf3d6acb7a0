//go:build linux

package vpcnet

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Machines join and leave, a listener comes and goes, and everybody looks at the cloud, all at once and all in the kernel.
func TestMachinesJoinAndLeaveWhileEverybodyLooks(t *testing.T) {
	t.Parallel()
	const rounds = 10
	w := newWorld(t)
	lb := testkit.Must(w.api.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{AddressType: alicloud.AddressInternet}, "joining"))(t)
	group := testkit.Must(w.api.CreateVServerGroup(t.Context(), lb.ID, "joining", nil))(t)
	join := func(id string) error {
		i, err := w.cloud.PutInstance(id, emulator.InstanceSpec{})
		if err != nil {
			return err
		}
		_, err = w.Attach(t.Context(), Endpoint{Name: id, Address: netip.MustParseAddr(i.PrivateIP)})
		return err
	}
	var changes, looks sync.WaitGroup
	for i := range 3 {
		changes.Go(func() {
			for range rounds {
				id := fmt.Sprintf("i-%d", i)
				if err := errors.Join(join(id), w.Detach(id)); err != nil {
					t.Error(err)
				}
				w.cloud.ReleaseInstance(id)
			}
		})
	}
	changes.Go(func() {
		for i := range rounds {
			listener := alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 8000 + i, Protocol: alicloud.ProtocolTCP}, VServerGroupID: group}
			err := errors.Join(w.api.CreateListener(t.Context(), lb.ID, listener), w.api.StartListener(t.Context(), lb.ID, listener.ListenerKey),
				w.api.DeleteListener(t.Context(), lb.ID, listener.ListenerKey))
			if err != nil {
				t.Error(err)
			}
		}
	})
	done := make(chan struct{})
	for range 2 {
		looks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				request := httptest.NewRequest(http.MethodGet, "/_emulator/state", nil)
				request.RemoteAddr, request.Host = "127.0.0.1:1", "localhost"
				recorder := httptest.NewRecorder()
				if w.cloud.Handler().ServeHTTP(recorder, request); recorder.Code != http.StatusOK {
					t.Errorf("state: %d", recorder.Code)
				}
			}
		})
	}
	changes.Wait()
	close(done)
	looks.Wait()
}
