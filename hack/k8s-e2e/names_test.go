package main

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// answered is a [dns.ResponseWriter] that keeps the answer.
type answered struct {
	dns.ResponseWriter
	message *dns.Msg
}

func (a *answered) WriteMsg(m *dns.Msg) error {
	a.message = m
	return nil
}

// ask returns the code of the answer to a question, and the addresses in it.
func ask(r *resolver, name string, kind uint16) (code int, addresses []string) {
	to := &answered{}
	r.ServeDNS(to, new(dns.Msg).SetQuestion(dns.Fqdn(name), kind))
	for _, record := range to.message.Answer {
		if a, ok := record.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
		}
	}
	return to.message.Rcode, addresses
}

func TestResolver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const name = "nlb-1.cn-hangzhou.nlb.aliyuncsslb.com"
		all, failure, reads := map[string][]netip.Addr{}, error(nil), 0
		r := &resolver{known: map[string]answer{}, read: func(context.Context) (map[string][]netip.Addr, error) {
			reads++
			return all, failure
		}}
		expect := func(what string, kind uint16, code int, want ...string) {
			t.Helper()
			if got, addresses := ask(r, "NLB-1"+name[5:], kind); got != code || !slices.Equal(addresses, want) {
				t.Errorf("%s: got %s %v, want %s %v", what, dns.RcodeToString[got], addresses, dns.RcodeToString[code], want)
			}
		}
		expect("nobody has the name", dns.TypeA, dns.RcodeNameError)
		all[name] = []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")}
		expect("it appears at once", dns.TypeA, dns.RcodeSuccess, "203.0.113.1", "203.0.113.2")
		expect("it has no IPv6 addresses", dns.TypeAAAA, dns.RcodeSuccess)
		if reads != 2 {
			t.Errorf("%d reads within a second, want 2: only what was found is kept", reads)
		}
		time.Sleep(fresh)
		all[name] = all[name][:1]
		expect("a zone left", dns.TypeA, dns.RcodeSuccess, "203.0.113.1")
		time.Sleep(fresh)
		failure = net.ErrClosed
		expect("the cloud does not answer", dns.TypeA, dns.RcodeServerFailure)
		failure = nil
		delete(all, name)
		expect("deleted, and still kept", dns.TypeA, dns.RcodeSuccess, "203.0.113.1")
		time.Sleep(kept)
		expect("deleted", dns.TypeA, dns.RcodeNameError)
	})
}

func TestNamesIn(t *testing.T) {
	t.Parallel()
	found, err := namesIn(`{"loadBalancers":[{"DNSName":"x"}],"networkLoadBalancers":[{"DNSName":"NLB-1.example","addresses":["10.0.0.1"]},{"DNSName":"nlb-2.example","addresses":[]}]}`)
	if err != nil || len(found) != 2 || len(found["nlb-1.example"]) != 1 || len(found["nlb-2.example"]) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := namesIn(`{"networkLoadBalancers":[{"addresses":["x"]}]}`); err == nil {
		t.Error("an address that is none is no error")
	}
}

func TestSpecsWith(t *testing.T) {
	t.Parallel()
	clb, nlb := specsWith(productCLB), specsWith(productNLB)
	for i, e := range entries {
		if clb[i].name != e.name || nlb[i].name != e.name || clb[i].obstacle != e.clb || nlb[i].obstacle != e.nlb {
			t.Errorf("%s: got %+v and %+v", e.name, clb[i], nlb[i])
		}
		if (e.shows == "") != (e.clb.why != "" && e.nlb.why != "") {
			t.Errorf("%s: what a pass shows is %q, and it cannot pass because %q and %q", e.name, e.shows, e.clb.why, e.nlb.why)
		}
	}
}
