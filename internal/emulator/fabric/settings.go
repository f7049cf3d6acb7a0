package fabric

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// settings are what a listener's attributes mean for its traffic. They are read anew for every connection, so that a
// change holds at once.
type settings struct {
	key socketKey
	// vips are where the listener accepts; the load balancer's own address is the first.
	vips      []VIP
	group     string
	scheduler string
	access    access
	// persistence is how long a source stays with its backend server; 0 means not at all.
	persistence time.Duration
	// established is how long a TCP connection may be idle; 0 means for ever.
	established time.Duration
	// drain is how long connections to a backend server that left go on; 0 means until they end by themselves.
	drain   time.Duration
	proxyV2 bool
	check   check
	web     webSettings
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
}

// access is a listener's access control.
type access struct {
	// kind is white, black, or "" for none.
	kind     string
	prefixes []netip.Prefix
}

// admits reports whether a source may connect. A list without entries admits everybody, be it white or black.
// Source: https://alibabacloud.com/help/doc-detail/85979.htm
func (a access) admits(source netip.Addr) bool {
	if a.kind == "" || len(a.prefixes) == 0 {
		return true
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

// settingsOf reads a listener; lists are the blocks of an access control list by its id.
func settingsOf(lb *cloud.LoadBalancer, vips []VIP, l *cloud.Listener, lists func(id string) []cloud.ACLEntry) settings {
	a := attributes(l.Attributes)
	s := settings{
		key: socketKey{lb.ID, l.ListenerKey}, vips: vips, group: l.ServerGroupID, scheduler: a["Scheduler"],
		persistence: a.seconds("PersistenceTimeout"), established: a.seconds("EstablishedTimeout"),
		proxyV2: a.on("ProxyProtocolV2Enabled"), check: checkOf(l.Protocol, a), web: webSettingsOf(a),
	}
	if a.on("ConnectionDrain") {
		s.drain = a.seconds("ConnectionDrainTimeout")
	}
	if a.on("AclStatus") {
		s.access.kind = a["AclType"]
		for id := range strings.SplitSeq(a["AclId"], ",") {
			for _, e := range lists(id) {
				if p, err := netip.ParsePrefix(e.CIDR); err == nil {
					s.access.prefixes = append(s.access.prefixes, p)
				}
			}
		}
	}
	return s
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

// readListener reads a listener that carries traffic, with the backend servers of its group.
func (f *Fabric) readListener(key socketKey) (s settings, members []member, ok bool) {
	f.store.View(func() {
		now := time.Now()
		lb, known := f.store.LoadBalancers.Get(key.lb)
		if !known {
			return
		}
		l, known := lb.Listeners[key.ListenerKey]
		if !known || !carries(lb, l, now) {
			return
		}
		s, members, ok = f.settings(lb, l), f.membersOf(lb, l, now), true
	})
	return s, members, ok
}

// settings reads a listener under the store's lock.
func (f *Fabric) settings(lb *cloud.LoadBalancer, l *cloud.Listener) settings {
	return settingsOf(lb, f.vipsOf(lb, time.Now()), l, func(id string) []cloud.ACLEntry {
		if acl, ok := f.store.ACLs.Get(id); ok {
			return acl.Entries
		}
		return nil
	})
}
