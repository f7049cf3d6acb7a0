//go:build unix && fleet

package e2e

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// restartPause is the least time between two starts of a replica, so that one that cannot live does not take the processors.
const restartPause = time.Second

// deployment is a number of managers of which one leads. Those that end are started again, as the kubelet does.
type deployment struct {
	*world
	args     []string
	replicas []replica
	restarts int
}

type replica struct {
	*program
	started time.Time
}

func (w *world) deploy(replicas int, args ...string) *deployment {
	w.Helper()
	d := &deployment{world: w, args: args, replicas: make([]replica, replicas)}
	for i := range d.replicas {
		d.replicas[i] = d.launch()
	}
	d.untilLed(time.Time{})
	return d
}

// launch starts a replica, which ends with the test; its log is shown where that helps.
func (d *deployment) launch() replica {
	d.Helper()
	r := replica{program: d.launchManager(d.args...), started: time.Now()}
	d.Cleanup(func() {
		if d.Failed() {
			d.Logf("the last lines of a manager:\n%s", lastLines(r.stderr.String()))
		}
		select {
		case <-r.done:
		default:
			r.stop()
		}
	})
	return r
}

// keep starts the replicas again that have ended. It is to be called all the time.
func (d *deployment) keep() {
	d.Helper()
	for i, r := range d.replicas {
		select {
		case <-r.done:
			if time.Since(r.started) < restartPause {
				continue
			}
			d.Logf("%s ended after %s: %s", r.name, time.Since(r.started).Round(time.Second), tail(r.stderr.String(), 300))
			d.restarts++
			d.replicas[i] = d.launch()
		default:
		}
	}
}

// untilLed waits until one of the replicas leads and has said so after the time given, and returns its name.
func (d *deployment) untilLed(after time.Time) string {
	d.Helper()
	holder := ""
	d.until("a manager leads", startDeadline, func(ctx context.Context) string {
		d.keep()
		lease, err := d.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, managerProgram, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder == "" || lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(after) {
			return "nobody holds the lease"
		}
		return ""
	})
	return holder
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }
