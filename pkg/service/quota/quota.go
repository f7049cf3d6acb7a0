package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Code is how the Quota Center calls a quota.
type Code string

// The quotas that the manager counts with. Sources: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/user-guide/manage-quotas,
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/product-overview/limits.
const (
	// ListenersPerCLB is how many listeners a CLB may have.
	ListenersPerCLB Code = "slb_quota_listeners_num"
	// BackendsPerCLB is how many backend servers a CLB may have in all its vServer groups.
	BackendsPerCLB Code = "slb_quota_backendservers_num"
	// CLBsPerInstance is how many times an ECS instance may be a backend server of CLBs.
	CLBsPerInstance Code = "slb_quota_backendserver_attached_num"
	// ServersPerNLB is how many backend servers an NLB may have in all its server groups.
	ServersPerNLB Code = "nlb_quota_loadbalancer_noeci_servers_num"
	// GroupsPerServer is in how many server groups of NLBs a backend server may be.
	GroupsPerServer Code = "nlb_quota_server_added_num"
)

// published are the values that an account has until it asks for more.
var published = map[Code]int{
	ListenersPerCLB: 50, BackendsPerCLB: 200, CLBsPerInstance: 50,
	ServersPerNLB: 400, GroupsPerServer: 200,
}

// Limit is the value of a quota.
type Limit struct {
	Value int
	// Assumed says that nobody has said so: it is the published value, and the account may have a larger one.
	Assumed bool
}

// Book holds what is known of the quotas. Nil knows the published values.
type Book struct {
	mu         sync.Mutex // guards the rest
	configured map[Code]int
}

// NewBook returns a book with the values that somebody has configured, see [Check].
func NewBook(configured map[string]int) *Book {
	b := &Book{configured: map[Code]int{}}
	for code, value := range configured {
		b.configured[Code(code)] = value
	}
	return b
}

// Limit returns the value of a quota.
func (b *Book) Limit(code Code) Limit {
	if b == nil {
		return Limit{Value: published[code], Assumed: true}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if value, ok := b.configured[code]; ok {
		return Limit{Value: value}
	}
	return Limit{Value: published[code], Assumed: true}
}

// Check returns what is wrong with configured values, a line for each.
func Check(configured map[string]int) []string {
	var wrong []string
	for _, code := range slices.Sorted(maps.Keys(configured)) {
		if _, ok := published[Code(code)]; !ok {
			wrong = append(wrong, fmt.Sprintf("quotas: %q, accepted: %s", code, strings.Join(Codes(), ", ")))
		} else if value := configured[code]; value < 1 {
			wrong = append(wrong, fmt.Sprintf("quotas.%s: %d, accepted: 1 or more", code, value))
		}
	}
	return wrong
}

// Codes are all quotas, sorted.
func Codes() []string {
	var codes []string
	for code := range published {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	return codes
}
