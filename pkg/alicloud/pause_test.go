package alicloud_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestPausedWrites: while writing is paused, no write reaches the cloud, and reads do.
func TestPausedWrites(t *testing.T) {
	t.Parallel()
	account := testcloud.New(t, emulator.Options{})
	var paused atomic.Bool
	client := account.NewClient(func(o *alicloud.Options) { o.Paused = paused.Load })
	create := func() error {
		_, err := client.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{Name: "web", AddressType: alicloud.AddressInternet}, "token")
		return err
	}
	paused.Store(true)
	if err := create(); !errors.Is(err, alicloud.ErrPaused) || alicloud.IsAmbiguous(err) {
		t.Errorf("error %v, want one that says that nothing was done", err)
	}
	if _, err := client.DescribeVSwitches(t.Context(), "vpc-emulator"); err != nil {
		t.Error(err)
	}
	if calls := account.NewActions(); len(calls) != 1 {
		t.Errorf("calls %v, want the read only", calls)
	}
	paused.Store(false)
	if err := create(); err != nil {
		t.Error(err)
	}
}
