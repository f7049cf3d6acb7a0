package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
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
	learned    map[subject]lesson
}

// subject is a quota of one resource.
type subject struct {
	code Code
	id   string
}

// lesson is what a refusal has shown, until somebody may have raised the quota.
type lesson struct {
	value int
	until time.Time
}

// lessonTime is how long a refusal counts. Afterwards one call finds out whether it still holds.
const lessonTime = time.Hour

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

// Of returns the value of a quota for one resource: what a refusal has shown of it, where nothing else is known.
func (b *Book) Of(code Code, id string) Limit {
	limit := b.Limit(code)
	if b == nil || !limit.Assumed {
		return limit
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, ok := b.learned[subject{code, id}]; ok && time.Now().Before(found.until) {
		limit.Value = found.value
	}
	return limit
}

// Learn notes that the cloud refused to let a resource have more than it has. Nil learns nothing.
func (b *Book) Learn(code Code, id string, has int) {
	if b == nil || has == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.learned == nil {
		b.learned = map[subject]lesson{}
	}
	now := time.Now()
	maps.DeleteFunc(b.learned, func(_ subject, l lesson) bool { return !now.Before(l.until) })
	b.learned[subject{code, id}] = lesson{has, now.Add(lessonTime)}
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
