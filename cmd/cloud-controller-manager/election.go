package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/controller-manager/pkg/leadermigration"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/leadership"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// endGrace is how long the controllers may take to end after a stop. Calls in flight end with their context, so this is ample.
const endGrace = 5 * time.Second

// election makes the controllers start only when this process may write, and gives the Lease back when they have ended.
type election struct {
	flags *ownFlags
	stop  <-chan struct{}

	cloud *provider.Cloud
	term  *leadership.Term // nil while another process leads, and without leader election
}

// prepare takes the leader election over from the stock app, which never gives its Lease back. The stock election stays where
// leader migration needs its second Lease.
func (e *election) prepare(completed *config.CompletedConfig, cloud *provider.Cloud) error {
	e.cloud = cloud
	options, err := e.takeOver(completed)
	if err != nil {
		return err
	}
	lease := completed.ComponentConfig.Generic.LeaderElection
	isOfficial := options != nil && lease.ResourceNamespace == metav1.NamespaceSystem && lease.ResourceName == leadership.OfficialLease
	cloud.BeforeStart(func(ctx context.Context) {
		if options != nil {
			e.term, err = leadership.Acquire(ctx, *options)
		}
		if err == nil && !isOfficial { // with the Lease of the official CCM as ours, the election keeps it from running beside us
			err = leadership.WaitForOfficial(ctx, completed.Client.CoordinationV1().Leases(metav1.NamespaceSystem), e.flags.takeover)
		}
		if err != nil { // stopped before it led: there is nothing to end
			e.resign()
			klog.Flush()
			os.Exit(0)
		}
	})
	return nil
}

// takeOver returns nil where this process elects no leader.
func (e *election) takeOver(completed *config.CompletedConfig) (*leadership.Options, error) {
	generic := &completed.ComponentConfig.Generic
	lease := &generic.LeaderElection
	if !lease.LeaderElect || leadermigration.Enabled(generic) {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(lease.ResourceLock, lease.ResourceNamespace, lease.ResourceName,
		resourcelock.ResourceLockConfig{
			Identity: host + "_" + string(uuid.NewUUID()), EventRecorder: eventsUntil{completed.EventRecorder, e.stop},
		}, completed.Kubeconfig, lease.RenewDeadline.Duration)
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	lease.LeaderElect = false
	return &leadership.Options{
		Name: lease.ResourceName, Lock: lock,
		LeaseDuration: lease.LeaseDuration.Duration, RenewDeadline: lease.RenewDeadline.Duration, RetryPeriod: lease.RetryPeriod.Duration,
		Lost: func() {
			klog.ErrorS(nil, "Lost the leader election: stopping at once, because another manager may lead")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		},
	}, nil
}

// resign gives the Lease back, so that the standby need not wait until it expires. Where a controller has not ended, the Lease
// expires by itself: its last write could meet the first one of the next leader.
func (e *election) resign() {
	if e.term == nil {
		return
	}
	if !e.cloud.Wait(endGrace) {
		klog.ErrorS(nil, "A controller has not stopped in time: leaving the Lease to expire", "after", endGrace)
		return
	}
	e.term.Release()
}

// eventsUntil drops the events that come after the stop, when the stock app no longer sends any.
type eventsUntil struct {
	resourcelock.EventRecorder
	stop <-chan struct{}
}

// Eventf implements [resourcelock.EventRecorder].
func (e eventsUntil) Eventf(object runtime.Object, eventType, reason, message string, args ...any) {
	select {
	case <-e.stop:
	default:
		e.EventRecorder.Eventf(object, eventType, reason, message, args...)
	}
}
