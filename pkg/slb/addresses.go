package slb

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

const (
	// eipWait is how long a CLB without an elastic address is not asked for one again at first, and maxEIPWait the longest that it is not.
	eipWait    = time.Minute
	maxEIPWait = waits.ElasticAddress
)

// Status implements driver.Balancer.
func (c clb) Status(ctx context.Context, params annotation.Params) driver.Shown {
	return c.Stays.Wakes(c.statusFor(ctx, params))
}

func (c clb) statusFor(ctx context.Context, params annotation.Params) driver.Shown {
	actual := c.wholeModel()
	if actual == nil || params.Refuses(annotation.ScopeStatus) {
		return driver.Shown{Balancer: c}
	}
	serves := c.servesPort(actual)
	manages := c.managesListeners(params)
	if !manages { // whether a listener leads here is up to its owner; whether the Service may use the CLB, the policy has said
		serves = actual.LoadBalancer.Address != ""
	}
	var ports []corev1.PortStatus
	if c.desired != nil && manages {
		ports = portStatuses(c.ports, c.desired, actual, c.refused)
	}
	if !serves {
		return driver.Shown{Balancer: c, Ports: ports, Elsewhere: manages && len(c.Leaving) > 0}
	}
	external, addresses, problems := c.externalAddresses(ctx, c.observed, params)
	c.addresses, c.Showing = addresses, c.ID()
	shown := driver.Shown{Balancer: c, Status: statusOf(actual, params, external, c.ipMode(actual, params)), Ports: ports, Problems: problems}
	if len(problems) > 0 || addresses.doubt != "" {
		shown.Wake = addresses.wakesIn()
	}
	return shown
}

// servesPort reports whether the Service is to show the CLB: it serves a port. One that moves shows another CLB until all ports are served
// here, and from then on this one: nobody needs what it has elsewhere.
func (c clb) servesPort(actual *model.Model) bool {
	switch {
	case groups.ShowsFormer(c.Showing, c.Leaving, c.ID()):
		return !c.taken && actual.ServesAll(c.desired)
	case len(c.Leaving) > 0 && c.Showing == c.ID():
		return true
	}
	return actual.Serves(c.desired)
}

// managesListeners reports whether the Service manages the listeners of its CLB, which is known. On an existing one on which it only stays,
// the last plan says so.
func (c clb) managesListeners(params annotation.Params) bool {
	return !c.Reused() || params.OverridesListeners() || c.Stays != nil && c.desired != nil && c.desired.Override
}

// ipMode says whether nodes of the cluster may answer for the addresses of the CLB, nil to leave that to the API server, which then says
// so. With Proxy, also clients in the cluster go through the CLB: with auto they do where pods expect what only the CLB adds, the PROXY
// protocol, or where it ends TLS or HTTP.
func (c clb) ipMode(actual *model.Model, params annotation.Params) *corev1.LoadBalancerIPMode {
	mode := corev1.LoadBalancerIPMode(params.Or(annotation.IPMode, c.config.IPMode))
	if mode == annotation.IPModeAuto {
		mode = corev1.LoadBalancerIPModeVIP
		if c.desired != nil && slices.ContainsFunc(c.desired.Listeners, func(want model.Listener) bool { return changesTraffic(&want, actual) }) {
			mode = corev1.LoadBalancerIPModeProxy
		}
	}
	if mode == "" {
		return nil
	}
	return &mode
}

// changesTraffic reports whether pods get something else through the listener on a port than what clients send.
func changesTraffic(want *model.Listener, actual *model.Model) bool {
	return slices.ContainsFunc(actual.Listeners, func(have model.Listener) bool {
		onPort := have.Port == want.Port && (have.Protocol == alicloud.ProtocolUDP) == (want.Protocol == alicloud.ProtocolUDP)
		return onPort && (slices.Contains(annotation.Layer7, have.Protocol) || have.Attributes[alicloud.AttributeProxyProtocol] == "true")
	})
}

// statusOf returns what the Service shows of its CLB; external are addresses to show in place of the CLB's own.
func statusOf(
	actual *model.Model, params annotation.Params, external []string, mode *corev1.LoadBalancerIPMode,
) *corev1.LoadBalancerStatus {
	if name := params.Get(annotation.Hostname); name != "" {
		return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{Hostname: name}}}
	}
	if len(external) == 0 {
		external = []string{actual.LoadBalancer.Address}
	}
	status := &corev1.LoadBalancerStatus{}
	for _, address := range external {
		status.Ingress = append(status.Ingress, corev1.LoadBalancerIngress{IP: address, IPMode: mode})
	}
	return status
}

// elastic is what is known of the elastic addresses of a CLB.
type elastic struct {
	// shown are the last ones that were read, sorted, and doubt is why others may be bound by now.
	shown []string
	doubt string
	// next is when they are asked for again where there are none or a doubt, zero where at the next opportunity.
	next time.Time
	// lacking is since when there have been none, or nobody could read them; zero while neither is so.
	lacking time.Time
	// missing says since when answers lack those that are shown.
	missing presence.Missing
}

// nextReadIn is after what time they are asked for again that were read now: soon at first, and then twice as long after the start each
// time. Nothing says when one is bound.
func (a *elastic) nextReadIn(now time.Time) time.Duration {
	if a.lacking.IsZero() {
		return eipWait
	}
	return min(max(now.Sub(a.lacking), eipWait), maxEIPWait)
}

// wakesIn is after what time the next read is due, 0 for none.
func (a *elastic) wakesIn() time.Duration {
	if len(a.shown) > 0 && a.doubt == "" {
		return 0
	}
	return max(time.Until(a.next), time.Nanosecond)
}

// askAgain has them read again at the next opportunity. What they were stays shown until then.
func (a *elastic) askAgain() { a.next = time.Time{} }

// begunWith returns what a Service says itself of the elastic addresses of its CLB, which another process has read.
func (a elastic) begunWith(svc *corev1.Service, lb *alicloud.LoadBalancer, params annotation.Params) elastic {
	if !a.next.IsZero() || len(a.shown) > 0 || params.Get(annotation.ExternalIPType) != annotation.ExternalEIP ||
		svc.Labels[driver.LabelLoadBalancerID] != lb.ID {
		return a
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && ingress.IP != lb.Address {
			a.shown = append(a.shown, ingress.IP)
		}
	}
	return a
}

// externalAddresses returns the addresses that the Service shows in place of the CLB's, nil for the CLB's own, and the elastic
// addresses as they are known then. Where they cannot be read, and while only one answer lacks them, the last ones stay: clients know them.
func (e *engine) externalAddresses(ctx context.Context, clb observed, params annotation.Params) ([]string, elastic, []problem.Problem) {
	known := clb.addresses
	if params.Get(annotation.ExternalIPType) != annotation.ExternalEIP || params.Has(annotation.Hostname) {
		return nil, known, nil
	}
	id := clb.loadBalancer.Value.ID
	if known.next.IsZero() || (len(known.shown) == 0 || known.doubt != "") && !time.Now().Before(known.next) {
		known = e.readAddresses(ctx, id, known)
	}
	switch {
	case len(known.shown) > 0 && (known.doubt == "" || time.Since(known.lacking) < eipWait):
		return known.shown, known, nil
	case len(known.shown) > 0:
		return known.shown, known,
			[]problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress,
				"cannot read the elastic addresses of CLB %s; the Service goes on to show the last ones: %s",
				id, known.doubt)}
	case known.doubt != "":
		return nil, known,
			[]problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress,
				"cannot read the elastic addresses of CLB %s; the Service shows the CLB's own address: %s",
				id, known.doubt)}
	}
	return nil, known,
		[]problem.Problem{problem.Newf(problem.ReasonFailedSetEIPAddress, "CLB %s has no elastic address; the Service shows the CLB's own", id)}
}

func (e *engine) readAddresses(ctx context.Context, id string, known elastic) elastic {
	now := time.Now()
	found, err := e.api.DescribeEIPs(ctx, alicloud.EIPOfLoadBalancer, id)
	if err == nil && len(found) == 0 && len(known.shown) > 0 {
		known.missing, err = e.missing.Confirm(known.missing, true, "no elastic address was found")
	}
	if err != nil {
		known.doubt = failureText(err)
		if known.lacking.IsZero() {
			known.lacking = now
		}
		if known.next = now.Add(known.nextReadIn(now)); errors.As(err, new(*problem.WaitError)) {
			known.next = now.Add(e.missing.Over)
		}
		return known
	}
	known.shown, known.doubt, known.missing = nil, "", presence.Missing{}
	for _, eip := range found {
		known.shown = append(known.shown, eip.Address)
	}
	slices.Sort(known.shown)
	switch {
	case len(known.shown) > 0:
		known.lacking = time.Time{}
	case known.lacking.IsZero():
		known.lacking = now
	}
	known.next = now.Add(known.nextReadIn(now))
	return known
}

// failureText is what a failed call said, without what differs from attempt to attempt.
func failureText(err error) string {
	var call *alicloud.Error
	if errors.As(err, &call) && call.Code != "" {
		return call.Action + ": " + call.Code
	}
	return err.Error()
}
