package sharing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Shared is what it means for a Service that it shares its load balancer with the others of a group.
type Shared struct {
	Group mark.Group
	Place Place
	// Product is what texts call the load balancer, and Room is how many listeners it has room for, with the quota that says so.
	Product, Room string
	// Leads says that the annotations of the Service decide on the attributes of the load balancer. Otherwise those of Leader do, which are
	// Params.
	Leads  bool
	Leader *corev1.Service
	Params annotation.Params
}

// BalancerName is the name of the load balancer of a Service when no annotation gives one, also of one that shares none.
func (s *Shared) BalancerName(svc *corev1.Service) string {
	if s != nil {
		return s.Group.DefaultName()
	}
	return mark.DefaultName(svc.UID)
}

// Owner has a port of a load balancer.
type Owner struct {
	// Name is the Service, zero for somebody outside of the group.
	Name types.NamespacedName
	// Younger says that the Service is younger than the one that wants the port: it has no other place to go to.
	Younger bool
}

// Because says why the Service has the port.
func (o Owner) Because() string {
	if o.Younger {
		return "cannot move to another load balancer of the group"
	}
	return "is older"
}

// shareable are the annotations that each Service of a group has for itself.
var shareable = []annotation.Suffix{
	annotation.Group, annotation.GroupOverflow, annotation.LoadBalancerID, annotation.ForceOverrideListeners, annotation.PreserveOnDelete,
	annotation.ExternalIPType, annotation.Hostname, annotation.TunnelType, annotation.Type,
}

// Differences reports what a Service asks of the load balancer otherwise than the leader, of the annotations in rows.
func (s *Shared) Differences(params annotation.Params, rows []annotation.Row) []problem.Problem {
	var problems []problem.Problem
	for _, row := range rows {
		want, have := params.Get(row.Suffix), s.Params.Or(row.Suffix, row.Default)
		if slices.Contains(shareable, row.Suffix) || !params.Has(row.Suffix) || want == have {
			continue
		}
		effective := "does not set it"
		if have != "" {
			effective = fmt.Sprintf("has %q", have)
		}
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect,
				"%s: %q has no effect: on the %s of load balancer group %s, the oldest Service decides, which is %s and %s",
				row.Suffix, want, s.Product, s.Group, mark.ServiceName(s.Leader), effective))
	}
	return problems
}

// Refuses reports whether the Service does not get a port, with what it should know of that.
func (s *Shared) Refuses(port corev1.ServicePort) (refused bool, problems []problem.Problem) {
	if s == nil {
		return false, nil
	}
	owner, taken := s.Place.Taken[Port{Number: port.Port, UDP: port.Protocol == corev1.ProtocolUDP}]
	switch {
	case s.Place.Full:
		return true, nil
	case !taken:
		return false, nil
	case owner.Name.Name == "":
		return true, []problem.Problem{problem.Newf(problem.ReasonListenerConflict,
			"port %d of load balancer group %s is in use by a listener that does not belong to the group; choose another port or group, or set %s: \"true\"",
			port.Port, s.Group, annotation.GroupOverflow)}
	}
	return true, []problem.Problem{problem.Newf(problem.ReasonListenerConflict,
		"port %d of load balancer group %s belongs to Service %s, which %s; choose another port or group, or set %s: \"true\"",
		port.Port, s.Group, owner.Name, owner.Because(), annotation.GroupOverflow)}
}

// TakesPorts reports whether others have ports of the Service, or there is no room for it; a Service that shares nothing has all its ports.
func (s *Shared) TakesPorts() bool { return s != nil && s.Place.Lacks() }

// Full reports that the load balancer has no room for the ports of the Service.
func (s *Shared) Full(ports int) []problem.Problem {
	if s == nil || !s.Place.Full {
		return nil
	}
	if s.Place.TooLarge {
		return []problem.Problem{problem.Newf(problem.ReasonListenerConflict,
			"no %s has room for the %s of the Service, which is in load balancer group %s, but for %s; distribute the ports over several Services, or %s",
			s.Product, problem.Count(ports, "port"), s.Group, s.Room, alicloud.RaiseQuota)}
	}
	return []problem.Problem{problem.Newf(problem.ReasonListenerConflict,
		"the %s of load balancer group %s has no room for the %s of the Service: it has room for %s, and others use %d; choose another group, set %s: \"true\", or %s",
		s.Product, s.Group, problem.Count(ports, "port"), s.Room, s.Place.Others, annotation.GroupOverflow, alicloud.RaiseQuota)}
}
