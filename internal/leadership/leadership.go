// Package leadership says when this process may write: while it holds the Lease of the leader election, and no official CCM
// runs beside it.
//
// The stock elector never gives its Lease back, so that after a clean stop the standby waits until the Lease expires, and it
// leaves the controllers running while the process stops. This package gives the Lease back when its caller says that the
// controllers have ended, and a standby notices within a second.
//
// It runs no controllers and ends no process.
package leadership

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// standbyPeriod is how often a standby reads the Lease. It bounds how long the cluster is without a leader after a clean stop.
const standbyPeriod = time.Second

// Options configure [Acquire]. All fields are required.
type Options struct {
	// Name is the name of the Lease, for metrics.
	Name string
	Lock resourcelock.Interface
	// LeaseDuration is how long a Lease is valid that nobody renews. A leader that cannot renew it for RenewDeadline has lost it.
	// RetryPeriod is the time between two renewals.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Lost is called when the Lease could not be renewed. Nothing may be written from then on: another process may lead.
	Lost func()
}

// Term is the time during which this process leads.
type Term struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// Acquire returns when this process leads, or with the error of ctx. The end of ctx does not end the term.
//
// A standby's elector reads the Lease every RetryPeriod and up to a good deal more. When the Lease is given back meanwhile, a
// new elector takes it at once.
func Acquire(ctx context.Context, opts Options) (*Term, error) {
	for {
		term, leads, err := opts.elect(ctx)
		if err != nil {
			return nil, err
		}
		if opts.waitUntilReleased(ctx, leads) {
			return term, nil
		}
		term.Release()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// Release gives the Lease back and returns when that is done or has failed. Nothing may be written from then on.
func (t *Term) Release() {
	t.cancel()
	<-t.ended
}

// elect starts an elector, which closes leads when it has the Lease.
func (o Options) elect(ctx context.Context) (term *Term, leads chan struct{}, err error) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	term = &Term{cancel: cancel, ended: make(chan struct{})}
	leads = make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: o.Name, Lock: o.Lock, LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) },
			OnStoppedLeading: func() {
				if run.Err() == nil {
					o.Lost()
				}
			},
		},
	})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	go func() {
		defer close(term.ended)
		elector.Run(run)
	}()
	return term, leads, nil
}

// waitUntilReleased returns true when this process leads, and false when ctx ends or somebody has given the Lease back.
func (o Options) waitUntilReleased(ctx context.Context, leads <-chan struct{}) bool {
	reader := readerOf(o.Lock)
	ticker := time.NewTicker(standbyPeriod)
	defer ticker.Stop()
	for standby := false; ; {
		select {
		case <-leads:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		if reader == nil {
			continue
		}
		record, _, err := reader.Get(ctx)
		switch {
		case err != nil: // the elector says why
		case record.HolderIdentity == "":
			return false
		case !standby && record.HolderIdentity != o.Lock.Identity():
			klog.FromContext(ctx).Info("Standing by: another manager leads", "lease", o.Lock.Describe(), "holder", record.HolderIdentity)
			standby = true
		}
	}
}

// readerOf returns a lock for reading alone, nil where there is none. The elector's own may not be read beside it: a lock remembers
// the Lease that it read last, and would write over the one that another process has just taken.
func readerOf(lock resourcelock.Interface) resourcelock.Interface {
	lease, ok := lock.(*resourcelock.LeaseLock)
	if !ok {
		return nil
	}
	return &resourcelock.LeaseLock{LeaseMeta: lease.LeaseMeta, Client: lease.Client, LockConfig: lease.LockConfig}
}
