package leadership

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
)

// Leader says who holds a Lease.
type Leader struct {
	// Holder is the identity in the Lease, empty where there is no Lease or it was given back.
	Holder string
	// RenewTime is when it renewed the Lease last, by its clock, and Acquired since when it has the Lease.
	RenewTime, Acquired time.Time
	// Leads says that it still renews the Lease.
	Leads bool
}

// FindLeader reads a Lease, and once more after a time where it looks expired: the clocks of two machines may differ, and a holder that
// renews it is alive. A Lease that does not exist is no error.
func FindLeader(ctx context.Context, leases coordinationclient.LeaseInterface, name string, again time.Duration) (Leader, error) {
	found, valid, err := readLeader(ctx, leases, name)
	if err != nil || found.Holder == "" {
		return found, err
	}
	if found.Leads = time.Since(found.RenewTime).Abs() < valid; found.Leads {
		return found, nil
	}
	if err = sleep.For(ctx, again); err != nil {
		return found, err
	}
	later, _, err := readLeader(ctx, leases, name)
	later.Leads = later.Holder != "" && !later.RenewTime.Equal(found.RenewTime)
	return later, err
}

// readLeader also returns how long the Lease is valid after a renewal.
func readLeader(ctx context.Context, leases coordinationclient.LeaseInterface, name string) (Leader, time.Duration, error) {
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Leader{}, 0, nil
	}
	if err != nil {
		return Leader{}, 0, err
	}
	found := Leader{
		Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), RenewTime: ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time,
		Acquired: ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time,
	}
	return found, durationOf(lease), nil
}
