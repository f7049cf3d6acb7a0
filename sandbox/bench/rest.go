package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// writesCalm is how long no CLB must be written to before what the manager does in steps counts as done: a new leader goes on to read for
// minutes, and between two steps may be seconds.
const writesCalm = 30 * time.Second

// standstill is what the manager costs while nothing changes.
type standstill struct {
	tally
	// cpu is in percent of a core.
	mib, cpu float64
	begin    time.Time
}

// atRest measures a time in which nothing changes.
func (e *env) atRest(ctx context.Context, window time.Duration) (standstill, error) {
	before, err := e.manager.used()
	if err != nil {
		return standstill{}, err
	}
	r := standstill{begin: time.Now()}
	e.begin()
	if err = e.watch(ctx, window); err != nil {
		return standstill{}, err
	}
	after, err := e.manager.used()
	if err != nil {
		return standstill{}, err
	}
	r.cpu, r.mib = 100*(after.cpu-before.cpu)/time.Since(r.begin).Seconds(), after.resident
	r.tally = count(e.since(everything), everything)
	e.say("calls while nothing changes: %s", r.tally)
	return r, nil
}

// watch lets time pass, as long as the manager runs.
func (e *env) watch(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return e.untilWithin(ctx, d+untilTimeout, poll, d.String()+" have passed", func(context.Context) (string, error) {
		if rest := time.Until(end); rest > 0 {
			return rest.Round(time.Second).String() + " are left", nil
		}
		return "", nil
	})
}

// calmed waits until no CLB is written to any more.
func (e *env) calmed(ctx context.Context) error {
	_, err := e.restedFor(ctx, writesCalm, writes(ofProduct(productCLB)))
	return err
}

// usage is what a program has used so far: memory in MiB, and seconds of processor time.
type usage struct{ resident, highest, cpu float64 }

func (m *manager) used() (usage, error) { return usedBy(m.Pid()) }

// usedBy reads from /proc what a program has used.
func usedBy(pid int) (usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, fmt.Errorf("measure a program (Linux only): %w", err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return usage{}, fmt.Errorf("measure the processor time of a program: %w", err)
	}
	status, err := proc.NewStatus()
	if err != nil {
		return usage{}, fmt.Errorf("measure the memory of a program: %w", err)
	}
	const mib = 1 << 20
	return usage{float64(status.VmRSS) / mib, float64(status.VmHWM) / mib, stat.CPUTime()}, nil
}
