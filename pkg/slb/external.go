package slb

import (
	"context"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// eipWait is how long a CLB without an elastic address is left alone: its user may bind one at any time, and no event
// tells of it.
const eipWait = time.Minute

// eips are the elastic addresses of a CLB as they were last read.
type eips struct {
	addresses []string
	err       error
	at        time.Time
}

// current reports whether the addresses need no reading: they are as old as what else is known of the CLB, and where
// there are none, they were looked for not long ago.
func (e *eips) current() bool {
	return e != nil && (len(e.addresses) > 0 || time.Since(e.at) < eipWait)
}

// externalAddresses returns the addresses that the Service shows in place of the CLB's, nil for the CLB's own.
func (r *Reconciler) externalAddresses(ctx context.Context, known *memory, params annotation.Params) ([]string, []problem.Problem) {
	if params.Get(annotation.ExternalIPType) != annotation.ExternalEIP || params.Has(annotation.Hostname) {
		return nil, nil
	}
	id := known.actual.LoadBalancer.ID
	if !known.eips.current() {
		known.eips = r.readEIPs(ctx, id)
	}
	switch {
	case known.eips.err != nil:
		return nil, []problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress, "the elastic addresses of CLB %s cannot be read; the Service shows the CLB's own address: %s",
			id, failureText(known.eips.err))}
	case len(known.eips.addresses) == 0:
		return nil, []problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress, "CLB %s has no elastic address; the Service shows the CLB's own", id)}
	}
	return known.eips.addresses, nil
}

func (r *Reconciler) readEIPs(ctx context.Context, id string) *eips {
	read := &eips{at: time.Now()}
	found, err := r.opts.API.DescribeEIPs(ctx, alicloud.EIPOfLoadBalancer, id)
	read.err = err
	for _, eip := range found {
		read.addresses = append(read.addresses, eip.Address)
	}
	slices.Sort(read.addresses)
	return read
}
