package quota

import "slices"

// Use is how much of a quota is used.
type Use struct {
	Code Code
	Used int
	// Part is what of a load balancer it is about, where a Service does not know all of it: parts of several Services add up, and each counts
	// once. It is empty for all of the load balancer.
	Part string
}

// ofAccount are the quotas that all load balancers share. The others are quotas of each load balancer or instance.
var ofAccount = []Code{CLBs, ACLs, NLBs, NLBGroups}

// OfAccount returns the quotas that all load balancers of the account share.
func OfAccount() []Code { return slices.Clone(ofAccount) }

// OfAccount reports whether the quota is one of the account, and not one of each load balancer or instance.
func (c Code) OfAccount() bool { return slices.Contains(ofAccount, c) }

// words say what a quota is.
var words = map[Code]string{
	ListenersPerCLB: "listeners that a CLB can have", BackendsPerCLB: "backend servers that a CLB can have",
	CLBsPerInstance: "CLBs that an instance can be behind",
	ServersPerNLB:   "backend servers that an NLB can have", GroupsPerServer: "server groups of NLBs that an instance can be in",
	ListenersPerNLB: "listeners that an NLB can have",
	CLBs:            "CLBs that the account can have", ACLs: "access control lists that the account can have",
	NLBs:      "NLBs that the account can have",
	NLBGroups: "server groups of NLBs that the account can have", RouteEntries: "custom entries that a route table can have",
}

// Words say what there can be so many of.
func (c Code) Words() string { return words[c] }

// Shares of a quota, in percent. Between the two bounds a quota is nearly used up if it was before.
const (
	nearlyFrom = 80
	nearlyTo   = 70
)

// Nearly reports whether a quota is nearly used up, given whether it was before. A quota without a value never is.
func Nearly(used, limit int, before bool) bool {
	if before {
		return limit > 0 && used*100 >= limit*nearlyTo
	}
	return limit > 0 && used*100 >= limit*nearlyFrom
}
