package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// handoverWithin is how long a cluster may be without a leader, in seconds, when the leader is stopped cleanly, as in every rolling update.
const handoverWithin = 2

// handover measures how soon a standby leads after the leader was asked to stop, its own shutdown included.
func handover(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err = e.startManager(ctx); err != nil {
		return nil, err
	}
	leases := e.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	before, err := leases.Get(ctx, managerProgram, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the leader's lease: %w", err)
	}
	standby, err := e.launchManager(ctx, "standby")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, standby.stop(ctx)) }()
	if err = e.untilStandingBy(ctx, standby); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err = e.stopManager(ctx); err != nil {
		return nil, err
	}
	var took time.Duration
	err = e.until(ctx, "the standby leads", func(ctx context.Context) (string, error) {
		lease, failed := leases.Get(ctx, managerProgram, metav1.GetOptions{})
		if failed != nil {
			return "", fmt.Errorf("read the standby's lease: %w", failed)
		}
		if !isHeld(lease) || *lease.Spec.HolderIdentity == *before.Spec.HolderIdentity {
			return "it does not", standby.ended()
		}
		took = lease.Spec.AcquireTime.Sub(begin)
		return "", nil
	})
	if err != nil {
		return nil, err
	}
	return []Figure{atMost("standby leads after a clean stop of the leader", took.Seconds(), "s", handoverWithin)}, nil
}

// untilStandingBy waits until a second manager waits for the Lease.
func (e *env) untilStandingBy(ctx context.Context, standby *process) error {
	return e.until(ctx, "the second manager stands by", func(context.Context) (string, error) {
		log, err := os.ReadFile(standby.log.Name())
		if err == nil && !bytes.Contains(log, []byte("Standing by")) {
			return "it does not say so", standby.ended()
		}
		return "", err
	})
}
