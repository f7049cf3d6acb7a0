package provider

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
)

// TestReady: a standby is ready, a leader once its caches are filled, and not while the cloud has not answered for a minute.
func TestReady(t *testing.T) {
	t.Parallel()
	for name, slices := range map[string]bool{"EndpointSlices": true, "Endpoints": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := emulatortest.New(t, emulator.Options{})
				kube := allowing(true)
				c := New(keys, Environment{})
				c.client, c.place, c.clusterID = steadyClient(t, server), place{vpcID: emulatortest.VPC}, "c1"
				c.kube, c.ctx, c.endpointSlices = kube, t.Context(), slices
				if err := c.Ready(); err != nil {
					t.Errorf("a standby: %v", err)
				}
				factory := informers.NewSharedInformerFactory(kube, 0)
				c.SetInformers(factory)
				if err := c.Ready(); !errors.Is(err, errCachesEmpty) {
					t.Errorf("a leader with empty caches: %v, want that it is not ready", err)
				}
				factory.Start(t.Context().Done())
				factory.WaitForCacheSync(t.Context().Done())
				if err := c.Ready(); err != nil {
					t.Errorf("a leader with filled caches: %v", err)
				}
				server.Fault(`{"action":"DescribeVSwitches","drop":"before","times":100}`)
				for range 2 {
					if _, err := c.client.DescribeVSwitches(t.Context(), emulatortest.VPC); err == nil {
						t.Fatal("the cloud has answered")
					}
					time.Sleep(time.Minute)
				}
				if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "no call has succeeded since") {
					t.Errorf("a cloud that has not answered for a minute: %v", err)
				}
				server.ClearFaults()
				if _, err := c.client.DescribeVSwitches(t.Context(), emulatortest.VPC); err != nil {
					t.Fatal(err)
				}
				if err := c.Ready(); err != nil {
					t.Errorf("a cloud that answers again: %v", err)
				}
			})
		})
	}
}
