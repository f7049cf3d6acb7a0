package service

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Preview is what passes over a Service would write.
type Preview struct {
	Service *corev1.Service
	// Plans are those of all passes until nothing is left to do, and Steps what they do.
	Plans []Plan
	Steps []Step
	// Problems are what the events of the Service would say after the passes that write something, and after the last one.
	Problems []problem.Problem
	// Err is why the Service cannot be planned; then more may be to do than Steps.
	Err error

	// lasting are those of the problems that a pass had which wrote something.
	lasting []problem.Problem
	// unmade are the steps of the last pass if it could not carry out all of them: the next one begins with those that are left.
	unmade []Step
}

// maxPreviewPasses is how many passes over each Service are planned. Few need a second one: what one Service frees, another one gets.
const maxPreviewPasses = 5

// PreviewAll returns what passes over the Services would write, and writes nothing. Each is planned as if what is planned for those before it was written. It
// reads the cloud as a program does that has just started, and changes nothing that this program knows.
func (r *Reconciler) PreviewAll(ctx context.Context, services []*corev1.Service) ([]Preview, error) {
	run, err := r.dryRun(services)
	if err != nil {
		return nil, err
	}
	previews := make([]Preview, 0, len(services))
	for _, svc := range slices.SortedFunc(slices.Values(services), ByAge) {
		previews = append(previews, Preview{Service: svc})
	}
	for pass := range maxPreviewPasses {
		more := false
		for i := range previews {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			more = run.preview(ctx, &previews[i], pass == 0) || more
		}
		if !more {
			break
		}
	}
	return previews, nil
}

// Preview returns what passes over the Service would write, if nothing was written for others, see [Reconciler.PreviewAll].
func (r *Reconciler) Preview(ctx context.Context, svc *corev1.Service) (Goal, error) {
	previews, err := r.PreviewAll(ctx, []*corev1.Service{svc})
	if err != nil {
		return Goal{Plan: nothing{}}, err
	}
	return Goal{Plan: foreseen(previews[0].Steps), Problems: previews[0].Problems}, previews[0].Err
}

// preview makes one more pass over a Service. It reports whether that would write anything.
func (d *dryRun) preview(ctx context.Context, p *Preview, first bool) bool {
	svc, found, err := d.services.GetByKey(mark.ServiceName(p.Service).String())
	now, ok := svc.(*corev1.Service)
	if err != nil || !found || !ok || now.UID != p.Service.UID {
		return false // its deletion is planned
	}
	all, problems, err := d.pass(ctx, now)
	if waits := errors.As(err, new(*problem.WaitError)); waits && !first && p.Err == nil {
		err = nil // the manager would wait, too, for what no dry run can bring about
	}
	steps := slices.DeleteFunc(slices.Clone(all), func(step Step) bool { return slices.Contains(p.unmade, step) })
	p.Plans, p.Steps, p.Err, p.unmade = append(p.Plans, d.plans...), append(p.Steps, steps...), err, nil
	p.note(problems, len(steps) > 0)
	if d.failed {
		p.unmade = all
	}
	return len(steps) > 0
}

// note notes what the events would say after one more pass.
func (p *Preview) note(problems []problem.Problem, writes bool) {
	all := slices.Concat(p.lasting, problems)
	if p.Problems = problem.ByReason(all); writes {
		p.lasting = all
	}
}

// foreseen is a plan that was carried out in a dry run.
type foreseen []Step

// Steps implements Plan.
func (f foreseen) Steps() []Step { return f }

// Deploy implements Plan.
func (foreseen) Deploy(ctx context.Context, svc *corev1.Service, create Create) Deployment {
	return nothing{}.Deploy(ctx, svc, create)
}
