package fabric

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// settings are what a listener's attributes mean for its traffic, whatever the product. They are read anew for every connection, so that
// a change holds at once.
type settings struct {
	key   cloud.ListenerID
	vpcID string
	// vips are where the listener accepts; the load balancer's own address is the first.
	vips      []VIP
	scheduler string
	access    access
	security  security
	// acceptsFirst lets an accept rule of security groups win over a drop rule of the same priority.
	acceptsFirst bool
	// persistence is how long a source stays with its backend server; 0 means not at all.
	persistence time.Duration
	// idle is how long a connection may be idle; 0 means for ever, for UDP sessionIdle.
	idle time.Duration
	// drains ends connections to a backend server that left or failed after drain; without it they go on until they end by themselves.
	drains bool
	drain  time.Duration
	// preserveClient makes backend servers see the client's address, not the load balancer's.
	preserveClient bool
	// perZone sends from a VIP to the backend servers of its zone only.
	perZone bool
	proxy   proxySettings
	check   check
	web     webSettings
}

// isNLB tells the listeners of NLBs, which have an ID, from those of CLBs.
func (s settings) isNLB() bool { return s.key.ID != "" }

// admits reports whether a connection may enter.
func (s settings) admits(a arrival) bool {
	return s.access.admits(a.source.Addr()) && s.security.admits(a.source.Addr(), transport(s.key.Protocol), a.port, s.acceptsFirst)
}

// serves reports whether a backend server gets connections of a VIP.
func (f *Fabric) serves(s settings, m backend, v VIP) bool {
	switch {
	case !s.perZone || m.zone == v.Zone:
		return true
	case m.zone == "":
		return f.holds("network.nlb-server-zones")
	}
	return false
}

// turnsOf names the balancer of a VIP: where the zones are apart, each takes its own turns.
func (s settings) turnsOf(v VIP) turnsKey {
	if s.perZone {
		return turnsKey{s.key, v.Zone}
	}
	return turnsKey{listener: s.key}
}

// inner is the address in the VPC that stands behind a VIP: its own, for a public IPv4 address the private one of its zone.
func (s settings) inner(v VIP) VIP {
	for _, own := range s.vips {
		if own.Zone == v.Zone && strings.Contains(own.Address, ":") == strings.Contains(v.Address, ":") {
			return own
		}
	}
	return v
}

// webSettings are those of HTTP and HTTPS listeners.
type webSettings struct {
	sticky                                              stickySettings
	forwardedFor, slbIP, slbID, proto, slbPort, srcPort bool
	idle, request                                       time.Duration
	// forwardPort is the HTTPS listener that requests are redirected to; 0 means none.
	forwardPort, forwardCode int
}

// stickySettings say how a client is kept with its backend server by a cookie.
type stickySettings struct {
	// mode is insert, server, or "" for none.
	mode    string
	cookie  string
	timeout time.Duration
	// dotted writes dots into the values of cookies.
	dotted bool
}

// access is a listener's access control.
type access struct {
	// kind is white, black, or "" for none.
	kind     string
	prefixes []netip.Prefix
	// closed refuses everybody.
	closed bool
}

// admits reports whether a source may connect. A list without entries admits everybody, be it white or black.
// Source: https://alibabacloud.com/help/doc-detail/85979.htm
func (a access) admits(source netip.Addr) bool {
	if a.kind == "" || len(a.prefixes) == 0 {
		return !a.closed
	}
	for _, p := range a.prefixes {
		if p.Contains(source.Unmap()) {
			return a.kind == "white"
		}
	}
	return a.kind == "black"
}

// attributes read typed values from a listener's attributes; absent ones are zero.
type attributes map[string]string

func (a attributes) on(name string) bool { return a[name] == "on" || a[name] == "true" }

func (a attributes) number(name string) int {
	// The attribute table admits numbers only; absent is 0.
	n, _ := strconv.Atoi(a[name])
	return n
}

func (a attributes) seconds(name string) time.Duration {
	return time.Duration(a.number(name)) * time.Second
}

func webSettingsOf(a attributes) webSettings {
	w := webSettings{
		forwardedFor: a.on("XForwardedFor"), slbIP: a.on("XForwardedFor_SLBIP"), slbID: a.on("XForwardedFor_SLBID"),
		proto: a.on("XForwardedFor_proto"), slbPort: a.on("XForwardedFor_SLBPORT"), srcPort: a.on("XForwardedFor_ClientSrcPort"),
		idle: a.seconds("IdleTimeout"), request: a.seconds("RequestTimeout"),
	}
	if a.on("StickySession") {
		w.sticky = stickySettings{mode: a["StickySessionType"], cookie: insertedCookie, timeout: a.seconds("CookieTimeout")}
		if w.sticky.mode == stickyServer {
			w.sticky.cookie = a["Cookie"]
		}
	}
	if a.on("ListenerForward") {
		w.forwardPort, w.forwardCode = a.number("ForwardPort"), a.number("ForwardCode")
	}
	return w
}
