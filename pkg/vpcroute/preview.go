package vpcroute

import (
	"context"
	"time"
)

// Preview returns what the next pass would write, one line per change, and writes nothing. The node informer must have
// synced.
func (w *Writer) Preview(ctx context.Context) ([]string, error) {
	d, err := w.desired(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := w.read(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, t := range tables {
		plan := diff(d, t, w.opts.Config)
		for i := range plan.remove {
			lines = append(lines, (&change{remove: &plan.remove[i]}).String())
		}
		for i := range plan.create {
			lines = append(lines, (&change{create: &plan.create[i]}).String())
		}
	}
	return lines, nil
}
