package nlb

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// refusesReuse says why the Service may not use an existing load balancer, "" if it may.
func (e *engine) refusesReuse(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) (reason string, err error) {
	if reason = e.refusedByPolicy(svc, lb); reason != "" {
		return reason, nil
	}
	if reason = e.config.RefusesCreated(svc.Namespace, lb.Tags); reason != "" {
		return reason, nil
	}
	return e.leadsToAPIServer(ctx, svc, lb)
}

// refusedByPolicy says why the policy keeps the Service from an existing load balancer, "" if it does not. It is asked after each read of
// one: the tag that allows it may go.
func (e *engine) refusedByPolicy(svc *corev1.Service, lb *alicloud.NLB) string {
	allow, _ := lb.Tag(mark.TagAllow)
	return e.config.Policy.RefusesReuse(e.config.ClusterID, svc.Namespace, allow)
}

// leadsToAPIServer says that the load balancer is in front of the API servers, as its addresses, the port of a listener or the backend
// servers show; "" if it is not. A Service that was on it before keeps what it has there, unless it uses the port of the API server.
func (e *engine) leadsToAPIServer(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) (reason string, err error) {
	server := e.config.APIServer()
	at := slices.IndexFunc(addressesOf(lb), server.HasAddress)
	if at < 0 && server.Port == 0 {
		return "", nil // nothing is known that its listeners would show
	}
	listeners, err := e.api.ListNLBListeners(ctx, []string{lb.ID})
	if err != nil {
		return "", fmt.Errorf("read the listeners of NLB %s: %w", lb.ID, err)
	}
	was := e.wasOn(svc, lb, listeners)
	if at >= 0 && !was {
		return "is that of the API server (" + addressesOf(lb)[at] + "): a mistake on it would cut off the whole cluster", nil
	}
	port, err := e.apiServerPort(ctx, svc, listeners, was)
	if err != nil || port == 0 {
		return "", err
	}
	return fmt.Sprintf("is that of the API server, whose listener has port %d: a mistake on it would cut off the whole cluster", port), nil
}

// apiServerPort returns the port of a listener that leads to an API server, 0 for none. For a Service that was on the load balancer before,
// only its own ports count.
func (e *engine) apiServerPort(ctx context.Context, svc *corev1.Service, listeners []alicloud.NLBListener, was bool) (int, error) {
	server := e.config.APIServer()
	if server.Port == 0 {
		return 0, nil
	}
	checked := map[string]bool{} // groups
	for i := range listeners {
		if was && !usesPort(svc, listeners[i].Port) {
			continue
		}
		leads, err := e.leadsToCluster(ctx, &listeners[i], server, checked)
		if err != nil {
			return 0, err
		}
		if leads {
			return listeners[i].Port, nil
		}
	}
	return 0, nil
}

// leadsToCluster reports whether a listener that no manager made leads to an API server. checked are the groups that do not.
func (e *engine) leadsToCluster(
	ctx context.Context, listener *alicloud.NLBListener, server policy.APIServer, checked map[string]bool,
) (bool, error) {
	if _, _, marked := mark.ParseNLB(valueOf(listener.Description)); marked {
		return false, nil
	}
	group := valueOf(listener.ServerGroupID)
	if listener.Port == server.Port || group == "" || checked[group] {
		return listener.Port == server.Port, nil
	}
	checked[group] = true
	return e.hasAPIServer(ctx, group, server)
}

func usesPort(svc *corev1.Service, port int) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == port })
}

// wasOn reports whether the Service was on the load balancer before: its status shows the name of it, or a listener has its mark. Its label
// proves nothing: whoever can edit Services can also set it.
func (e *engine) wasOn(svc *corev1.Service, lb *alicloud.NLB, listeners []alicloud.NLBListener) bool {
	owner := mark.OwnerOf(svc, e.config.ClusterID)
	return showsName(svc, lb) ||
		slices.ContainsFunc(listeners, func(l alicloud.NLBListener) bool { return owner.OwnsNLB(valueOf(l.Description)) })
}

// hasAPIServer reports whether a backend server of the group is an API server.
func (e *engine) hasAPIServer(ctx context.Context, group string, server policy.APIServer) (bool, error) {
	servers, err := e.api.ListNLBServers(ctx, group)
	if err != nil {
		return false, fmt.Errorf("read the backend servers of group %s: %w", group, err)
	}
	return slices.ContainsFunc(servers, func(s alicloud.NLBServer) bool { return server.Is(s.ID, s.IP, s.Port) }), nil
}

// addressesOf returns the addresses of a load balancer in all zones, and its name.
func addressesOf(lb *alicloud.NLB) []string {
	addresses := []string{lb.DNSName}
	for _, zone := range lb.Zones {
		addresses = append(addresses, zone.PrivateIPv4, zone.PublicIPv4, zone.IPv6)
	}
	return addresses
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
