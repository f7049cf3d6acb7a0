package conformance

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Where backend servers listen, and where their health is checked.
const (
	servedPort  = 8000
	checkedPort = 9000
)

// httpPort is that of listeners for TCP.
const httpPort = 80

// Clients of listeners, from ranges for documentation.
const (
	clientAddress  = "192.0.2.7"
	droppedAddress = "198.51.100.7"
	equalAddress   = "203.0.113.7"
)

// secondAddress is that of the second instance of the emulator of the tests.
const secondAddress = "10.1.0.11"

// addressOf is the address of an instance.
func (l *lab) addressOf(instance int) string {
	return [2]string{l.env.Address, secondAddress}[instance]
}

// nameOf is how a backend server on an instance calls itself.
func nameOf(instance int) string { return [2]string{"a", "b"}[instance] }

// serve runs a server on an instance.
func (l *lab) serve(protocol string, instance, port int, s server) {
	l.network.serve(protocol, l.addressOf(instance), port, s)
}

// clb is a CLB with a vServer group.
type clb struct{ id, group, address string }

func (l *lab) clb() clb {
	b := clb{id: l.balancer()}
	b.group = l.vServerGroup(b.id)
	b.address = text(l.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": b.id}), "Address")
	return b
}

// change adds instances to the vServer group, or removes them.
func (l *lab) change(b clb, how string, instances ...int) {
	servers := make([]string, 0, len(instances))
	for _, i := range instances {
		servers = append(servers, fmt.Sprintf(`{"serverId":%q,"port":%d}`, l.env.Instances[i], servedPort))
	}
	l.do("slb", how+"VServerGroupBackendServers", P{"VServerGroupId": b.group, "BackendServers": "[" + strings.Join(servers, ",") + "]"})
	l.follow()
}

// listen makes a listener and starts it.
func (l *lab) listen(b clb, protocol string, port int, more P) {
	p := l.listener(b.id, port, b.group)
	maps.Copy(p, more)
	l.do("slb", "CreateLoadBalancer"+protocol+"Listener", p)
	key := P{"LoadBalancerId": b.id, "ListenerPort": strconv.Itoa(port)}
	l.do("slb", "StartLoadBalancerListener", key)
	l.do("slb", "DescribeLoadBalancer"+protocol+"ListenerAttribute", key, until("", "Status", "running"))
	l.follow()
}

// follow gives the network the moment that it takes to follow a change.
func (l *lab) follow() { l.pause(time.Second) }

// nlbInZones is an NLB with its addresses.
type nlbInZones struct {
	id, name  string
	addresses []string
}

// balanced makes an NLB; more are parameters beside those for two zones.
func (l *lab) balanced(more P) nlbInZones {
	p := l.nlbZones("Intranet")
	maps.Copy(p, more)
	b := nlbInZones{id: text(l.do("nlb", "CreateLoadBalancer", p), "LoadbalancerId")}
	l.active(b.id)
	a := l.do("nlb", "GetLoadBalancerAttribute", P{"LoadBalancerId": b.id})
	b.name = text(a, "DNSName")
	for i := range 3 {
		if address := text(a, fmt.Sprintf("ZoneMappings.%d.LoadBalancerAddresses.0.PrivateIPv4Address", i)); address != "" {
			b.addresses = append(b.addresses, address)
		}
	}
	return b
}

// unchecked are parameters of a server group without health checks.
func unchecked(protocol string) P {
	return P{"Protocol": protocol, "HealthCheckConfig.HealthCheckEnabled": "false"}
}

// forward makes a listener of an NLB and returns its ID.
func (l *lab) forward(b nlbInZones, group, protocol string, port int, more P) string {
	p := nlbListener(b.id, group, protocol, port)
	maps.Copy(p, more)
	a := l.do("nlb", "CreateListener", p)
	l.job(a)
	l.active(b.id)
	l.follow()
	return text(a, "ListenerId")
}

// alter adds instances to a server group, or removes them.
func (l *lab) alter(action, group string, instances ...int) {
	p := P{"ServerGroupId": group}
	for n, i := range instances {
		key := fmt.Sprintf("Servers.%d.", n+1)
		p[key+"ServerId"], p[key+"ServerType"], p[key+"Port"] = l.env.Instances[i], "Ecs", strconv.Itoa(servedPort)
	}
	l.job(l.do("nlb", action, p))
	l.follow()
}

// What a client meets instead of an answer.
const (
	refusal = "refused"
	silence = "silence"
)

// meet connects a client to the HTTP port and returns the first text that it receives.
func (l *lab) meet(client, address string) (net.Conn, string) {
	c, err := l.network.connect(client, address, httpPort)
	if err != nil {
		return nil, refusal
	}
	l.open = append(l.open, c)
	return c, receive(c)
}

// greeting is the name of the backend server that a new connection reaches, or what the client meets instead.
func (l *lab) greeting(client, address string) string {
	c, text := l.meet(client, address)
	if c != nil {
		_ = c.Close()
	}
	name, _, _ := strings.Cut(text, " sees ")
	return name
}

// receive returns the next text on a connection.
func receive(c net.Conn) string {
	if c == nil {
		return refusal
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	buffer := make([]byte, 1000)
	n, err := c.Read(buffer)
	switch {
	case n > 0:
		return string(buffer[:n])
	case errors.Is(err, os.ErrDeadlineExceeded):
		return silence
	}
	return refusal
}

// again is what repeats returns where a connection continues.
const again = "again"

// repeats sends a text on a connection to a server that echoes.
func repeats(c net.Conn) string {
	if c == nil {
		return refusal
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, again); err != nil {
		return refusal
	}
	return receive(c)
}

// reply is what matters of an answer to an HTTP request.
type reply struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
}

// get makes an HTTP request to a listener.
func (l *lab) get(address string, port int) reply {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       l.network.dialer(clientAddress, address, port),
	}}
	request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "http://conformance.example.com/", http.NoBody)
	if err != nil {
		l.fail(err)
	}
	response, err := client.Do(request)
	if err != nil {
		l.fail(fmt.Errorf("request to port %d: %w", port, err))
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return reply{response.StatusCode, response.Header, response.Cookies()}
}

// whose says to whom an address belongs that a backend server sees.
func (b nlbInZones) whose(address netip.Addr) string {
	switch {
	case address == cloudsOwn:
		return "the cloud"
	case address.String() == clientAddress:
		return "the client"
	}
	for _, own := range b.addresses {
		if own == address.String() {
			return "the load balancer"
		}
	}
	return "somebody else"
}
