package slb

import (
	"context"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// eipWait is how long a CLB without an elastic address is not asked again.
const eipWait = time.Minute

// externalAddresses returns the addresses that the Service shows in place of the CLB's, nil for the CLB's own, and the elastic
// addresses as they are known then.
func (e *engine) externalAddresses(ctx context.Context, clb observed, params annotation.Params) ([]string, part[[]string], []problem.Problem) {
	if params.Get(annotation.ExternalIPType) != annotation.ExternalEIP || params.Has(annotation.Hostname) {
		return nil, clb.addresses, nil
	}
	id, known := clb.loadBalancer.value.ID, clb.addresses
	// Where there is none, one may be bound at any time, and no event says so.
	if !known.known() || len(known.value) == 0 && time.Since(known.readAt) >= eipWait {
		known = e.readAddresses(ctx, id)
	}
	switch {
	case known.doubt != "":
		return nil, known, []problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress, "cannot read the elastic addresses of CLB %s; the Service shows the CLB's own address: %s",
			id, known.doubt)}
	case len(known.value) == 0:
		return nil, known, []problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress, "CLB %s has no elastic address; the Service shows the CLB's own", id)}
	}
	return known.value, known, nil
}

func (e *engine) readAddresses(ctx context.Context, id string) part[[]string] {
	var read part[[]string]
	found, err := e.api.DescribeEIPs(ctx, alicloud.EIPOfLoadBalancer, id)
	addresses := make([]string, 0, len(found))
	for _, eip := range found {
		addresses = append(addresses, eip.Address)
	}
	slices.Sort(addresses)
	read.set(addresses)
	if err != nil {
		read.invalidate(failureText(err))
	}
	return read
}
