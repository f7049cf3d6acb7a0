package lightnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// Dialer opens a connection from machine from (an instance ID) to addr, as the VPC would.
type Dialer func(ctx context.Context, from, network, addr string) (net.Conn, error)

// Network is the network side of the machines: it opens connections to what runs on them. It implements fabric.Machines.
type Network struct {
	server *podServer
	life   context.Context //nolint:containedctx // ends with Close; every machine's life is inside it
	end    context.CancelFunc

	mu       sync.RWMutex
	vpc      Dialer              // how a machine reaches another one; nil until UseVPC
	services serviceReader       // what the machines' node ports stand for; nil until the kubelets run
	machines map[string]*machine // by instance ID
	byNode   map[string]*machine // by node name
	pods     map[netip.Addr]*runningPod
	byKey    map[string]*runningPod // by namespace/name
}

// machine is a running instance.
type machine struct {
	instanceID string
	nodeName   string
	addr       netip.Addr

	running context.Context //nolint:containedctx // ends when the machine is switched off, and with it every connection to it
	stop    context.CancelFunc

	mu   sync.Mutex
	next map[string]int // by Service port: the position of the round robin, guarded by mu
}

// runningPod is a pod whose containers answer.
type runningPod struct {
	key         string // namespace/name
	name        string
	machine     *machine
	addrs       []netip.Addr // one, or one of each IP version
	hostNetwork bool
	ports       []int32 // declared TCP ports; none declared means that the pod answers on all, as containerPort only informs

	running context.Context //nolint:containedctx // ends with the pod or its machine
	stop    context.CancelFunc
}

// NewNetwork makes a network without machines. It ends with ctx or Close.
func NewNetwork(ctx context.Context) *Network {
	life, end := context.WithCancel(ctx)
	return &Network{
		server:   newPodServer(),
		life:     life,
		end:      end,
		machines: map[string]*machine{},
		byNode:   map[string]*machine{},
		pods:     map[netip.Addr]*runningPod{},
		byKey:    map[string]*runningPod{},
	}
}

// UseVPC says how machines reach each other. Without it they do not.
func (n *Network) UseVPC(dial Dialer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.vpc = dial
}

// useServices says what node ports forward to.
func (n *Network) useServices(services serviceReader) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.services = services
}

// Close switches all machines off and stops answering.
func (n *Network) Close() error {
	n.end()
	return n.server.close()
}

// Dial opens a connection to addr ("ip:port") on the machine of instanceID; the ip is the machine's own or that of one of its pods.
// Errors are EHOSTUNREACH when nothing has the address there, ECONNREFUSED when nothing answers on the port.
func (n *Network) Dial(ctx context.Context, instanceID, network, addr string) (net.Conn, error) {
	target, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s on %s: %w", addr, instanceID, err)
	}
	if network != "tcp" && network != "tcp4" {
		return nil, dialError(network, addr, net.UnknownNetworkError(network))
	}
	n.mu.RLock()
	m := n.machines[instanceID]
	pod := n.pods[target.Addr()]
	n.mu.RUnlock()
	switch {
	case m == nil:
		return nil, dialError(network, addr, fmt.Errorf("machine %s does not run: %w", instanceID, syscall.EHOSTUNREACH))
	case target.Addr() == m.addr:
		return n.dialMachine(ctx, m, network, target)
	case pod == nil || pod.machine != m:
		return nil, dialError(network, addr, fmt.Errorf("no pod on %s has the address: %w", m.nodeName, syscall.EHOSTUNREACH))
	default:
		return n.dialPod(ctx, pod, network, target)
	}
}

// dialMachine reaches what listens on the machine's own address: pods in its network namespace and the node ports of Services.
func (n *Network) dialMachine(ctx context.Context, m *machine, network string, target netip.AddrPort) (net.Conn, error) {
	if pod := n.hostPod(m, int32(target.Port())); pod != nil {
		return n.dialPod(ctx, pod, network, target)
	}
	n.mu.RLock()
	services := n.services
	n.mu.RUnlock()
	if services == nil {
		return nil, dialError(network, target.String(), syscall.ECONNREFUSED)
	}
	forward, err := services.nodePort(int32(target.Port()), m.nodeName)
	if err != nil {
		return nil, dialError(network, target.String(), err)
	}
	if forward.healthCheck != nil {
		return n.server.open(ctx, m.running, visitor{health: forward.healthCheck}, target)
	}
	return n.forward(ctx, m, network, forward)
}

// forward opens a connection to one of a Service's endpoints, in turn. Like kube-proxy it tries one endpoint only: one that cannot be
// reached costs the connection.
func (n *Network) forward(ctx context.Context, m *machine, network string, to forwarding) (net.Conn, error) {
	if len(to.endpoints) == 0 {
		return nil, dialError(network, to.name, fmt.Errorf("the Service has no ready endpoint: %w", syscall.ECONNREFUSED))
	}
	endpoint := to.endpoints[m.turn(to.name, len(to.endpoints))]
	n.mu.RLock()
	pod, vpc := n.pods[endpoint.Addr()], n.vpc
	n.mu.RUnlock()
	if pod != nil && pod.machine == m {
		return n.dialPod(ctx, pod, network, endpoint)
	}
	if vpc == nil {
		return nil, dialError(network, endpoint.String(), fmt.Errorf("machine %s is not in a VPC: %w", m.instanceID, syscall.ENETUNREACH))
	}
	return vpc(ctx, m.instanceID, network, endpoint.String())
}

func (n *Network) dialPod(ctx context.Context, pod *runningPod, network string, target netip.AddrPort) (net.Conn, error) {
	if len(pod.ports) > 0 && !slices.Contains(pod.ports, int32(target.Port())) {
		return nil, dialError(network, target.String(), fmt.Errorf("pod %s: %w", pod.key, syscall.ECONNREFUSED))
	}
	return n.server.open(ctx, pod.running, visitor{pod: pod.name, node: pod.machine.nodeName}, target)
}

// hostPod is the pod of m's own network namespace that listens on port.
func (n *Network) hostPod(m *machine, port int32) *runningPod {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, pod := range n.byKey {
		// A host-network pod that declares nothing must not swallow every node port.
		if pod.hostNetwork && pod.machine == m && slices.Contains(pod.ports, port) {
			return pod
		}
	}
	return nil
}

// turn is the position of the next endpoint among count for a Service port.
func (m *machine) turn(port string, count int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	position := m.next[port] % count
	m.next[port] = position + 1
	return position
}

// switchOn adds a machine. The error says why its node name cannot be used.
func (n *Network) switchOn(instanceID, nodeName string, addr netip.Addr) (*machine, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other := n.byNode[nodeName]; other != nil {
		return nil, fmt.Errorf("switch on %s: instance %s already runs under the node name %s", instanceID, other.instanceID, nodeName)
	}
	m := &machine{instanceID: instanceID, nodeName: nodeName, addr: addr, next: map[string]int{}}
	m.running, m.stop = context.WithCancel(n.life)
	n.machines[instanceID], n.byNode[nodeName] = m, m
	return m, nil
}

// switchOff takes a machine away with its pods and connections, and returns it; nil when it was off.
func (n *Network) switchOff(instanceID string) *machine {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.machines[instanceID]
	if m == nil {
		return nil
	}
	m.stop()
	delete(n.machines, instanceID)
	delete(n.byNode, m.nodeName)
	for key, pod := range n.byKey {
		if pod.machine == m {
			n.forget(key, pod)
		}
	}
	return m
}

// machineOf is the running machine behind a node name, or nil.
func (n *Network) machineOf(nodeName string) *machine {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byNode[nodeName]
}

// startPod lets a pod answer from now on; the same pod again changes nothing.
func (n *Network) startPod(pod *runningPod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.byKey[pod.key]; old != nil {
		if old.machine == pod.machine && slices.Equal(old.addrs, pod.addrs) {
			return
		}
		n.forget(pod.key, old)
	}
	pod.running, pod.stop = context.WithCancel(pod.machine.running)
	n.byKey[pod.key] = pod
	if pod.hostNetwork {
		return
	}
	for _, addr := range pod.addrs {
		n.pods[addr] = pod
	}
}

// stopPod ends a pod and its connections.
func (n *Network) stopPod(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pod := n.byKey[key]; pod != nil {
		n.forget(key, pod)
	}
}

// forget needs mu locked.
func (n *Network) forget(key string, pod *runningPod) {
	pod.stop()
	delete(n.byKey, key)
	for _, addr := range pod.addrs {
		if n.pods[addr] == pod {
			delete(n.pods, addr)
		}
	}
}

// dialError has the form that package net gives its own, so that callers find timeouts and refusals where they look for them.
func dialError(network, addr string, err error) error {
	var unknown net.UnknownNetworkError
	if errors.As(err, &unknown) {
		return &net.OpError{Op: "dial", Net: network, Err: unknown}
	}
	return &net.OpError{Op: "dial", Net: network, Addr: namedAddr{network, addr}, Err: err}
}
