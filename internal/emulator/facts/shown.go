package facts

// shownBy names, for each fact that no scenario checks, the test of the emulator that shows how it behaves.
var shownBy = map[string]string{
	"common.settle":                "TestClock",
	"common.rates-unlisted":        "TestPublished",
	"nlb.zones-1-in-small-regions": "TestNLBRegionWithOneZone",
	"nlb.removing-counts":          "TestNLBRemovingServersCount",
	"nlb.package-with-addresses":   "TestNLBPackageWithAddresses",
	"nlb.durations":                "TestNLBLife",

	"network.acl-empty":              "TestAccessControl",
	"network.failed-server":          "TestTCPCheckDecides",
	"network.undecided-server":       "TestTCPCheckDecides",
	"network.all-failed":             "TestTCPCheckDecides",
	"network.statuses":               "TestFailures",
	"network.header-names":           "TestForwardedHeaders",
	"network.left-without-drain":     "TestConnectionDrain",
	"network.cookie-values":          "TestStickyCookies",
	"network.udp-sessions":           "TestUDPListener",
	"network.ipv6-addresses":         "TestLoadBalancerAddresses",
	"network.nlb-all-failed":         "TestNLBChecksDecide",
	"network.nlb-unhealthy-drain":    "TestNLBUnhealthyServersDrain",
	"network.nlb-health-words":       "TestNLBHealthStatus",
	"network.nlb-check-fail":         "TestNLBChecksByHTTP",
	"network.nlb-proxy-vpc":          "TestNLBProxyProtocol",
	"network.nlb-security-order":     "TestSecurityRules",
	"network.nlb-dropped":            "TestNLBSecurityGroups",
	"network.nlb-during-jobs":        "TestNLBJobsDoNotInterrupt",
	"network.nlb-removed-zone":       "TestNLBZoneThatGoes",
	"network.nlb-removed-zone-names": "TestNamesOfNLBs",
	"network.nlb-udp-sessions":       "TestNLBDatagrams",
	"network.nlb-server-zones":       "TestServersWithoutZoneServeAll",
	"network.nlb-sni":                "TestNLBEndsTLS",
	"network.nlb-alpn":               "TestNLBALPN",
	"network.nlb-check-source":       "TestNLBHidesClientsWhereTheGroupSaysSo",
}

// ShownBy is the test that shows a fact which no scenario checks, "" for other facts.
func (f *Fact) ShownBy() string { return shownBy[f.ID] }
