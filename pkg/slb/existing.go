package slb

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// checkExisting fails if the Service may not use an existing CLB. It is the one check, made after each read of such a CLB, whatever gives
// the CLB to the Service: the annotation, the label with the finalizer, which whoever can edit Services can also set, or what this process
// knows. A Service that was on the CLB before the policy keeps what it has there, and nothing is written.
func (e *engine) checkExisting(ctx context.Context, svc *corev1.Service, params annotation.Params, lb *alicloud.LoadBalancer) error {
	allow, _ := lb.Tag(mark.TagAllow)
	reason := e.config.Policy.RefusesReuse(e.config.ClusterID, svc.Namespace, allow)
	if reason == "" {
		reason = notReusable(lb, svc.Namespace, e.config)
	}
	if reason == "" {
		if reason = addressDiffers(lb, svc, params); reason != "" {
			useless, err := e.showsNothing(ctx, svc)
			if err != nil || useless {
				return err
			}
		}
	}
	return errNotReusable(lb.ID, reason)
}

// showsNothing reports whether the status of the Service shows the address of a CLB of a group on which nothing is the Service's any more:
// an older Service of the group has got its ports. Such an address keeps no Service from another CLB.
func (e *engine) showsNothing(ctx context.Context, svc *corev1.Service) (bool, error) {
	shown := svc.Status.LoadBalancer.Ingress
	if len(shown) != 1 || shown[0].IP == "" {
		return false, nil
	}
	found, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Address: shown[0].IP})
	if err != nil {
		return false, fmt.Errorf("find the CLB whose address the Service shows: %w", err)
	}
	at := slices.IndexFunc(found, func(lb alicloud.LoadBalancer) bool { return lb.Address == shown[0].IP })
	if at < 0 {
		return false, nil
	}
	if _, in := e.shared.GroupOn(&found[at]); !in {
		return false, nil
	}
	on, err := e.marksOn(ctx, svc, &found[at])
	return err == nil && !on, err
}

// admitContents fails if the existing CLB is that of the API server, as its address, its listeners and its groups show. A Service that was
// on it before keeps what it has there, unless it uses the port of the API server.
func (e *engine) admitContents(svc *corev1.Service, clb *observed) error {
	lb, server, was := &clb.loadBalancer.Value, e.config.APIServer(), e.servedOn(svc, clb)
	if server.HasAddress(lb.Address) && !was {
		return errNotReusable(lb.ID, "is that of the API server ("+lb.Address+"): a mistake on it would cut off the whole cluster")
	}
	ports := apiServerPorts(clb.listeners.Value, clb.groups.Value, server)
	if len(ports) == 0 || was && !usesPort(svc, ports) {
		return nil
	}
	return errNotReusable(lb.ID,
		fmt.Sprintf("is that of the API server, whose listener has port %d: a mistake on it would cut off the whole cluster", ports[0]))
}

// servedOn reports whether the Service was on the CLB before: its status shows the address, or a listener or a group has its mark. Its
// label proves nothing: whoever can edit Services can also set it.
func (e *engine) servedOn(svc *corev1.Service, clb *observed) bool {
	isMarked := func(text string) bool {
		service, clusterID, ok := mark.Parse(text)
		return ok && service == mark.ServiceName(svc) && (clusterID == e.config.ClusterID || clusterID == literalClusterID)
	}
	return showsAddress(svc, &clb.loadBalancer.Value) || slices.ContainsFunc(clb.listeners.Value, func(l model.Listener) bool {
		return isMarked(l.Description)
	}) ||
		slices.ContainsFunc(clb.groups.Value, func(g model.Group) bool { return isMarked(g.Name) })
}

// apiServerPorts returns the ports of the listeners that lead to API servers. A listener without a vServer group sends to the default
// servers, which are not read; on the port of the API server, nobody has anything else.
func apiServerPorts(listeners []model.Listener, groups []model.Group, server policy.APIServer) []int {
	var ports []int
	for i := range listeners {
		listener := &listeners[i]
		_, _, marked := mark.Parse(listener.Description)
		if listener.GroupID == "" && !marked && server.Port != 0 && listener.Port == server.Port {
			ports = append(ports, listener.Port)
		}
		at := slices.IndexFunc(groups, func(g model.Group) bool { return g.ID == listener.GroupID })
		if at >= 0 && slices.ContainsFunc(groups[at].Backends, func(b alicloud.Backend) bool {
			return server.Is(b.ServerID, b.ServerIP, b.Port)
		}) {
			ports = append(ports, listener.Port)
		}
	}
	return ports
}

func usesPort(svc *corev1.Service, ports []int) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(port corev1.ServicePort) bool { return slices.Contains(ports, int(port.Port)) })
}

// errNotReusable is the error about an existing CLB, nil without a reason.
func errNotReusable(id, reason string) error {
	if reason == "" {
		return nil
	}
	return &problem.ConfigError{Field: annotation.LoadBalancerID.Key(), Reason: "CLB " + id + " " + reason,
		Event: problem.ReasonLoadBalancerNotReusable}
}

// notReusable says what keeps a Service from using an existing CLB, "" for nothing.
func notReusable(lb *alicloud.LoadBalancer, namespace string, config config.Config) string {
	if reason := config.RefusesCreated(namespace, lb.Tags); reason != "" {
		return reason
	}
	if lb.VPCID != "" && config.VPCID != "" && lb.VPCID != config.VPCID {
		return fmt.Sprintf("is in VPC %s, the nodes are in %s", lb.VPCID, config.VPCID)
	}
	return ""
}
