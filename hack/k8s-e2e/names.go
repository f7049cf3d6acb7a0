package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

const (
	// kept is how long a name is answered for after the load balancer is gone, as by resolvers that keep answers: one spec sends a packet to a
	// deleted one, and expects none back, but not that there is no such name.
	kept = 2 * time.Minute
	// fresh is how long an answer serves without asking the cloud again: a spec sends 100 requests a second.
	fresh = time.Second
	// asking bounds one question to the cloud.
	asking = 5 * time.Second
	// dnsPort is that of name servers.
	dnsPort = "53"
	// loopback is where the client in the internet has its resolver.
	loopback = "127.0.0.1"
)

// names is the name server for the names of NLBs: one for a client in the internet, and one in the VPC, which cluster DNS asks.
type names struct {
	// resolvConf is the resolv.conf of the client in the internet, inside the address of the name server in the VPC.
	resolvConf, inside string

	resolver resolver
	servers  []*dns.Server
	done     sync.WaitGroup
}

// serveNames begins to answer in the networks of both clients. close ends it. The files are in dir.
func serveNames(ctx context.Context, c *cluster, dir string) (*names, error) {
	n := &names{resolvConf: filepath.Join(dir, "resolv.conf"), resolver: resolver{read: c.readNames, known: map[string]answer{}}}
	if err := os.WriteFile(n.resolvConf, []byte("nameserver "+loopback+"\n"), 0o644); err != nil {
		return nil, err
	}
	var err error
	if n.inside, err = addressIn(c.inside); err == nil {
		err = n.serve(ctx, c.inside, n.inside)
	}
	if err == nil {
		err = n.serve(ctx, c.namespace, loopback)
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// serve answers on an address in a network.
func (n *names) serve(ctx context.Context, namespace, address string) error {
	side, err := vpcnet.OpenNamespace(namespace)
	if err != nil {
		return err
	}
	socket, err := side.ListenPacket(ctx, net.JoinHostPort(address, dnsPort))
	if err = errors.Join(err, side.Close()); err != nil {
		return fmt.Errorf("serve the names of load balancers: %w", err)
	}
	server := &dns.Server{PacketConn: socket, Handler: &n.resolver}
	n.servers = append(n.servers, server)
	ready := make(chan struct{})
	server.NotifyStartedFunc = func() { close(ready) }
	n.done.Go(func() {
		if err := server.ActivateAndServe(); err != nil {
			say("the name server on %s has ended: %v", address, err)
		}
	})
	<-ready
	return nil
}

func (n *names) close() error {
	var errs []error
	for _, server := range n.servers {
		errs = append(errs, server.Shutdown())
	}
	n.done.Wait()
	return errors.Join(errs...)
}

// addressIn is the address of the only interface of a network.
func addressIn(namespace string) (string, error) {
	side, err := vpcnet.OpenNamespace(namespace)
	if err != nil {
		return "", err
	}
	var all []net.Addr
	entered := side.Do(func() { all, err = net.InterfaceAddrs() })
	if err = errors.Join(entered, err, side.Close()); err != nil {
		return "", err
	}
	for _, address := range all {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("the network %s has no address", namespace)
}

// readNames asks the cloud which addresses the names of NLBs stand for.
func (c *cluster) readNames(ctx context.Context) (map[string][]netip.Addr, error) {
	state, err := get(ctx, c.emulator+"/_emulator/state")
	if err != nil {
		return nil, err
	}
	return namesIn(state)
}

func namesIn(state string) (map[string][]netip.Addr, error) {
	var now struct {
		NLBs []struct {
			DNSName   string
			Addresses []netip.Addr
		} `json:"networkLoadBalancers"`
	}
	if err := json.Unmarshal([]byte(state), &now); err != nil {
		return nil, fmt.Errorf("read the state of the cloud: %w", err)
	}
	found := map[string][]netip.Addr{}
	for _, lb := range now.NLBs {
		found[strings.ToLower(lb.DNSName)] = lb.Addresses
	}
	return found, nil
}

// resolver answers questions for names, and keeps what it answered as the resolvers of clients do.
type resolver struct {
	// read returns the addresses of all names.
	read func(ctx context.Context) (map[string][]netip.Addr, error)

	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	addresses []netip.Addr
	seen      time.Time
}

// lookUp returns the addresses of a name, none for a name that nobody has.
func (r *resolver) lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	have := r.keep(name)
	if time.Since(have.seen) < fresh {
		return have.addresses, nil
	}
	all, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if len(all[name]) == 0 {
		return have.addresses, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[name] = answer{addresses: all[name], seen: time.Now()}
	return all[name], nil
}

// keep returns what was answered for a name in the last minutes.
func (r *resolver) keep(name string) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.known[name]; time.Since(have.seen) < kept {
		return have
	}
	delete(r.known, name)
	return answer{}
}

// ServeDNS implements dns.Handler.
func (r *resolver) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	reply := new(dns.Msg)
	reply.SetReply(question)
	for _, q := range question.Question {
		addresses, err := r.lookUp(ctx, q.Name)
		switch {
		case err != nil:
			reply.Rcode = dns.RcodeServerFailure
		case len(addresses) == 0:
			reply.Rcode = dns.RcodeNameError
		case q.Qtype == dns.TypeA:
			reply.Answer = append(reply.Answer, records(q.Name, addresses)...)
		}
	}
	_ = w.WriteMsg(reply) // the asker asks again when it is lost
}

// records are the IPv4 addresses as cluster DNS and clients may keep them for a second: how long they are kept is decided here.
func records(name string, addresses []netip.Addr) []dns.RR {
	var all []dns.RR
	for _, address := range addresses {
		if address.Is4() {
			all = append(all, &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: address.AsSlice()})
		}
	}
	return all
}
