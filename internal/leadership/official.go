package leadership

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
)

// OfficialLease is the Lease of the official CCM, in the namespace kube-system.
const OfficialLease = "ccm"

const (
	// officialPeriod is how often the Lease is read while the official CCM holds it.
	officialPeriod = 2 * time.Second
	// defaultLeaseDuration is that of a Lease that names none.
	defaultLeaseDuration = 15 * time.Second
	// longExpired is how long after its end a Lease counts as abandoned at once. Below it the clocks of two machines may differ,
	// and only a Lease that does not change says that its holder is gone.
	longExpired = time.Minute
)

// Official says whether the official CCM runs, by one read of its Lease.
type Official struct {
	// Holder is the identity that holds the Lease, empty when there is none or it has expired long ago.
	Holder    string
	RenewTime time.Time
	Duration  time.Duration
}

// ReadOfficial reads the Lease of the official CCM. A Lease that does not exist is no error.
func ReadOfficial(ctx context.Context, leases coordinationclient.LeaseInterface) (Official, error) {
	lease, err := leases.Get(ctx, OfficialLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Official{}, nil
	}
	if err != nil {
		return Official{}, err
	}
	return officialOf(lease, time.Now()), nil
}

func officialOf(lease *coordinationv1.Lease, now time.Time) Official {
	o := Official{Duration: durationOf(lease)}
	if lease.Spec.RenewTime != nil {
		o.RenewTime = lease.Spec.RenewTime.Time
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && now.Sub(o.RenewTime) < o.Duration+longExpired {
		o.Holder = *holder
	}
	return o
}

// durationOf returns how long a Lease is valid that nobody renews.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return defaultLeaseDuration
}

// WaitForOfficial returns when no official CCM holds its Lease: two managers that serve the same Services and nodes undo each
// other's work. With takeover it only logs. It returns the error of ctx when that ends first.
func WaitForOfficial(ctx context.Context, leases coordinationclient.LeaseInterface, takeover bool) error {
	logger := klog.FromContext(ctx)
	var seen Official
	var since time.Time
	for {
		now, err := ReadOfficial(ctx, leases)
		switch {
		case apierrors.IsForbidden(err):
			logger.Info("Cannot check whether the official CCM runs: the role may not read its Lease", "lease", OfficialLease)
			return nil
		case err != nil && since.IsZero():
			logger.Error(err, "Waiting: cannot read the Lease of the official CCM", "lease", OfficialLease)
			since = time.Now()
		case err != nil: // unknown: wait on
		case now.Holder == "":
			return nil
		case takeover:
			logger.Info("The official CCM holds its Lease; starting anyway because of --takeover", "lease", OfficialLease, "holder", now.Holder)
			return nil
		case seen.Holder == "":
			logger.Info("Waiting: the official CCM holds its Lease; stop it, or use --takeover to start anyway", "lease", OfficialLease, "holder",
				now.Holder)
			seen, since = now, time.Now()
		case now != seen:
			seen, since = now, time.Now()
		case time.Since(since) >= now.Duration:
			logger.Info("The official CCM no longer renews its Lease", "lease", OfficialLease, "holder", now.Holder)
			return nil
		}
		if err := sleep.For(ctx, officialPeriod); err != nil {
			return err
		}
	}
}
