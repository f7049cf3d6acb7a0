package facts

// network are the facts that only connections show.
func network() []Fact {
	const p = "network"
	return []Fact{
		behave(p, "acl-empty", on(pageCLBACL), "an access control list without entries accepts all clients", traffic),
		behave(p, "failed-server", on(pageCLBHealth), "a backend server that fails its checks gets no new connections until it recovers", traffic),
		behave(p, "undecided-server", assumed(noSource), "a backend server whose checks have not reached a threshold gets connections, and is unavailable in DescribeHealthStatus", traffic),
		behave(p, "all-failed", assumed(noSource), "CLB: if the checks of all backend servers fail, none gets connections", traffic),
		behave(p, "statuses", assumed(noSource), "HTTP listeners return 503 without a backend server, 502 if none accepts, 504 after RequestTimeout", traffic),
		behave(p, "header-names", assumed(noSource), "names of the headers other than X-Forwarded-For and X-Forwarded-Proto", traffic),
		behave(p, "left-without-drain", assumed(noSource), "connections to a backend server that left its group continue, without drain", traffic),
		behave(p, "cookie-values", assumed(noSource), "SERVERID contains the backend server and two times; the cookie of an application gets the backend server and ~ as a prefix", traffic),
		behave(p, "udp-sessions", assumed(noSource), "CLB: UDP sessions end after 90 s without a datagram, or when their backend server leaves", traffic),
		behave(p, "ipv6-addresses", assumed(noSource), "CLB: intranet IPv6 addresses are of the range of the vSwitch", account),
		behave(p, "nlb-all-failed", on(pageNLBHealth), "NLB: if the checks of all backend servers fail, all get connections", traffic),
		behave(p, "nlb-unhealthy-drain", on(pageNLBHealth), "NLB: connections to an unhealthy backend server end after the drain timeout, or continue without drain", traffic),
		behave(p, "nlb-health-words", on("https://alibabacloud.com/help/en/slb/api-getlistenerhealthstatus-nlb"), "NLB: Initial, Unhealthy, Unused, Unavailable, and the reasons CONNECT_TIMEOUT, CONNECT_FAIL, RECV_TIMEOUT", traffic),
		behave(p, "nlb-check-fail", assumed(noSource), "NLB: the reason of a check that got a wrong answer is CHECK_FAIL", traffic),
		behave(p, "nlb-proxy-vpc", on("https://help.aliyun.com/zh/privatelink/obtain-real-client-information"), "NLB: the PROXY header has the VPC in a field of type 0xE1, subtype 0x01", traffic),
		behave(p, "nlb-security-order", on(pageNLBGroups), "NLB accepts all clients with priority 100; at equal priority, a drop rule wins", traffic),
		behave(p, "nlb-dropped", assumed("the cloud leaves it without an answer"), "NLB: a source that a security group drops gets a reset", traffic),
		behave(p, "nlb-during-jobs", assumed(noSource), "NLB: connections continue, and new ones are accepted, during jobs", traffic),
		behave(p, "nlb-removed-zone", assumed(noSource), "NLB: connections through a zone that is removed, or an address that is taken away, end at once", traffic),
		behave(p, "nlb-removed-zone-names", assumed(noSource), "NLB: a zone that is removed leaves the name at once; clients may have it for another minute", traffic),
		behave(p, "nlb-udp-sessions", assumed(noSource), "NLB: UDP sessions of a backend server that leaves end after the drain timeout, without drain at once", traffic),
		behave(p, "nlb-server-zones", assumed(noSource), "NLB: with cross-zone off, backend servers without a zone serve all zones", traffic),
		behave(p, "nlb-sni", assumed(noSource), "NLB: the certificate with the exact name before a wildcard, the default certificate if none fits", traffic),
		behave(p, "nlb-alpn", assumed(noSource), "NLB: HTTP2Optional prefers HTTP/1.1, HTTP2Preferred HTTP/2; a client without ALPN is served", traffic),
		behave(p, "nlb-check-source", assumed(noSource), "NLB: the source of health checks, and of connections without preserved client addresses, is 100.64.0.1 on real machines", traffic),
	}
}
