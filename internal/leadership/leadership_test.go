package leadership

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

const namespace = metav1.NamespaceSystem

func optionsFor(client kubernetes.Interface, identity string, lost func()) Options {
	return Options{
		Name: "test", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, Lost: lost,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: "test"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
	}
}

func acquire(t *testing.T, opts Options) *Term {
	t.Helper()
	term, err := Acquire(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// TestStandbyLeadsSoonAfterRelease: also when the standby lost the first election.
func TestStandbyLeadsSoonAfterRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		never := func() { t.Error("a Lease was lost") }
		first := acquire(t, optionsFor(client, "a", never))
		second := make(chan *Term)
		go func() { second <- acquire(t, optionsFor(client, "b", never)) }()
		time.Sleep(time.Minute)
		select {
		case <-second:
			t.Fatal("two leaders")
		default:
		}
		released := time.Now()
		first.Release()
		term := <-second
		if took := time.Since(released); took > 2*time.Second {
			t.Errorf("the standby led after %s, want at most 2s", took)
		}
		term.Release()
	})
}

// TestStandbyWaitsForLeaseOfKilledLeader: without a release the Lease has to expire.
func TestStandbyWaitsForLeaseOfKilledLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "test"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("killed"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: new(metav1.NowMicro()),
			},
		})
		began := time.Now()
		term := acquire(t, optionsFor(client, "b", func() {}))
		if took := time.Since(began); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("the standby led after %s, want the duration of the Lease", took)
		}
		term.Release()
	})
}

// TestLostLeaseIsReported: a leader that cannot renew says so before another one can lead.
func TestLostLeaseIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var down atomic.Bool
		client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, apierrors.NewServiceUnavailable("down")
		})
		lost := make(chan time.Time, 1)
		term := acquire(t, optionsFor(client, "a", func() { lost <- time.Now() }))
		began := time.Now()
		down.Store(true)
		if at := <-lost; at.Sub(began) >= 15*time.Second {
			t.Errorf("lost after %s, want before the Lease expires", at.Sub(began))
		}
		term.Release()
	})
}

func TestAcquireEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first := acquire(t, optionsFor(client, "a", func() {}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if term, err := Acquire(ctx, optionsFor(client, "b", func() {})); err == nil {
			term.Release()
			t.Error("two leaders")
		}
		first.Release()
	})
}

func officialLease(age time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: OfficialLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("node-1_official"), LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(-age))),
		},
	}
}

// TestOfficialHolderIsNoticed: a live holder of the official Lease is waited for, whatever its clock says.
func TestOfficialHolderIsNoticed(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"same clock": 0, "its clock is behind": 40 * time.Second,
		"its clock is ahead": -40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(officialLease(skew))
				leases := client.CoordinationV1().Leases(namespace)
				var stopped atomic.Bool
				go func() { // the official CCM renews for five minutes
					for range 150 {
						time.Sleep(2 * time.Second)
						if _, err := leases.Update(t.Context(), officialLease(skew), metav1.UpdateOptions{}); err != nil {
							t.Error(err)
						}
					}
					stopped.Store(true)
				}()
				began := time.Now()
				if err := WaitForOfficial(t.Context(), leases, false); err != nil || !stopped.Load() {
					t.Errorf("went on after %s beside a live holder: %v", time.Since(began), err)
				}
				if took := time.Since(began); took > 5*time.Minute+20*time.Second {
					t.Errorf("waited %s, long after the holder was gone", took)
				}
			})
		})
	}
}

func TestOfficialHolderThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		age      time.Duration // of the last renewal; 0: there is no Lease
		takeover bool
		denied   bool
	}{
		"no Lease":             {},
		"abandoned":            {age: time.Hour},
		"--takeover":           {age: time.Second, takeover: true},
		"the role is too weak": {age: time.Second, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				if test.age > 0 {
					client = fake.NewClientset(officialLease(test.age))
				}
				if test.denied {
					client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, OfficialLease, nil)
					})
				}
				began := time.Now()
				if err := WaitForOfficial(t.Context(), client.CoordinationV1().Leases(namespace), test.takeover); err != nil || time.Since(began) > 0 {
					t.Errorf("waited %s: %v", time.Since(began), err)
				}
			})
		})
	}
}
