package backend

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Listening says whose listener is on a port of a load balancer.
type Listening int

// The values of [Listening].
const (
	NoListener Listening = iota
	OwnListener
	OthersListener
)

// Listeners are those that a load balancer has, All of them, and those that are not of the Service.
type Listeners struct {
	All, Others int
	// Quota is how many it may have, Code the name of that quota. One that is only Assumed is larger if the load balancer has more.
	Quota   int
	Code    string
	Assumed bool
}

// PortRoom is which ports of a Service a load balancer has room for. Ports that it has no room for need no backends either.
type PortRoom struct {
	// Ports are all but those without room.
	Ports     []corev1.ServicePort
	without   []corev1.ServicePort
	listeners Listeners
}

// PortRoomOf returns the room on a load balancer. Ports with a listener keep it; the others get one in their order.
func PortRoomOf(ports []corev1.ServicePort, on Listeners, of func(corev1.ServicePort) Listening) PortRoom {
	if on.Assumed && on.All > on.Quota {
		return PortRoom{Ports: ports}
	}
	free := on.Quota - on.Others
	for _, port := range ports {
		if of(port) == OwnListener {
			free--
		}
	}
	room := PortRoom{listeners: on}
	for _, port := range ports {
		_, served := CheckPort(port)
		switch {
		case !served || of(port) != NoListener: // needs no further one
		case free > 0:
			free--
		default:
			room.without = append(room.without, port)
			continue
		}
		room.Ports = append(room.Ports, port)
	}
	return room
}

// Refuses reports whether there is no room for a port.
func (r PortRoom) Refuses(port corev1.ServicePort) bool {
	return slices.ContainsFunc(r.without, func(p corev1.ServicePort) bool { return p.Port == port.Port && p.Protocol == port.Protocol })
}

// Problems says what to do about ports without room.
func (r PortRoom) Problems() []problem.Problem {
	if len(r.without) == 0 {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonListenerConflict,
		"%d of %d ports get no listener: the load balancer can have %d (quota %s), and others have %s; distribute the ports over several Services, or %s",
		len(r.without), len(r.Ports)+len(r.without), r.listeners.Quota, r.listeners.Code, problem.Count(r.listeners.Others, "listener"),
		alicloud.RaiseQuota)}
}
