package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Code is how the Quota Center calls a quota.
type Code string

// The quotas that the manager counts with. Sources:
// https://www.alibabacloud.com/help/en/slb/classic-load-balancer/user-guide/manage-quotas,
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/product-overview/limits.
const (
	// ListenersPerCLB is how many listeners a CLB may have.
	ListenersPerCLB Code = "slb_quota_listeners_num"
	// BackendsPerCLB is how many backend servers a CLB may have in all its vServer groups.
	BackendsPerCLB Code = alicloud.QuotaBackendsPerCLB
	// CLBsPerInstance is how many times an ECS instance may be a backend server of CLBs.
	CLBsPerInstance Code = alicloud.QuotaCLBsPerInstance
	// ServersPerNLB is how many backend servers an NLB may have in all its server groups.
	ServersPerNLB Code = alicloud.QuotaServersPerNLB
	// GroupsPerServer is in how many server groups of NLBs a backend server may be.
	GroupsPerServer Code = alicloud.QuotaGroupsPerServer
)

// The quotas whose use the manager shows, beside those.
const (
	// CLBs is how many CLBs the account may have, ACLs how many access control lists.
	CLBs Code = "slb_quota_instances_num"
	ACLs Code = "slb_quota_acls_num"
	// NLBs is how many NLBs the account may have, NLBGroups how many server groups, ListenersPerNLB how many listeners an NLB.
	NLBs            Code = "nlb_quota_loadbalancers_num"
	NLBGroups       Code = "nlb_quota_servergroups_num"
	ListenersPerNLB Code = "nlb_quota_loadbalancer_listeners_num"
	// RouteEntries is how many custom entries a route table may have.
	RouteEntries Code = alicloud.QuotaRouteEntries
)

// published are the values that an account has until it asks for more.
var published = map[Code]int{
	ListenersPerCLB: 50, BackendsPerCLB: 200, CLBsPerInstance: 50,
	ServersPerNLB: 400, GroupsPerServer: 200,
	CLBs: 60, ACLs: 200, NLBs: 60, NLBGroups: 3000, ListenersPerNLB: 50, RouteEntries: 200,
}

// publishedAbroad are the values that differ for accounts of the international site. Both sites have the same regions, so that only the
// account knows its site.
var publishedAbroad = map[Code]int{CLBs: 30}

// Source is where the value of a quota comes from.
type Source string

// The sources, the first of which that has a value counts. A refusal counts more than the Quota Center for the resource that was refused,
// because it is about that resource; it is forgotten as soon as the Quota Center shows a larger value than before.
const (
	Configured Source = "configured"
	Refusal    Source = "a refusal"
	Center     Source = "the Quota Center"
	Published  Source = "published"
)

// Limit is the value of a quota.
type Limit struct {
	Value  int
	Source Source
	// Assumed says that the owner of the cluster has not said so. The cloud then shows that the value is larger by having more than that:
	// nothing is taken away because of it.
	Assumed bool
	// Abroad is the published value for accounts of the international site, 0 where it is the same or the value is known.
	Abroad int
}

// Bound returns the value that must not be exceeded by an account that uses so much: the lower one, until the account proves that it has
// more.
func (l Limit) Bound(used int) int {
	if l.Abroad > 0 && used <= l.Abroad {
		return l.Abroad
	}
	return l.Value
}

// Exceeded reports whether more is used than the value, which is only assumed: the one that holds is larger, and how large is not known.
func (l Limit) Exceeded(used int) bool { return l.Assumed && used > l.Value }

// Origin says where the value comes from that [Limit.Bound] returns, and what else it may be.
func (l Limit) Origin(used int) string {
	switch {
	case l.Source == Refusal:
		return "known from a refusal"
	case l.Abroad == 0:
		return string(l.Source)
	case used <= l.Abroad:
		return fmt.Sprintf("%s for the international site, %d for the China site", l.Source, l.Value)
	}
	return fmt.Sprintf("%s for the China site", l.Source)
}

// Advice says how to make the value known to the manager, and is empty where it is known.
func (l Limit) Advice() string {
	if !l.Assumed || l.Source == Center {
		return ""
	}
	return "allow quotas:ListProductQuotas, or set Global.quotas in the cloud-config"
}

// Reading is what the Quota Center shows of a quota.
type Reading struct {
	Value int
	// Used is what of it the account uses, nil where that is not counted.
	Used *int
}

// Book holds what is known of the quotas. Nil knows the published values.
type Book struct {
	mu         sync.Mutex // guards the rest
	configured map[Code]int
	read       map[Code]Reading
	learned    map[subject]lesson
}

// subject is a quota of one resource.
type subject struct {
	code Code
	id   string
}

// lesson is what a refusal has shown. It counts until then; afterwards one call finds out whether it still holds.
type lesson struct {
	value int
	until time.Time
}

// NewBook returns a book with the values that somebody has configured, see [Check].
func NewBook(configured map[string]int) *Book {
	b := &Book{configured: map[Code]int{}}
	for code, value := range configured {
		b.configured[Code(code)] = value
	}
	return b
}

// Read notes what the Quota Center shows. What it shows no more stays as it was. It reports whether a value changed that counts.
func (b *Book) Read(readings map[Code]Reading) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read == nil {
		b.read = map[Code]Reading{}
	}
	for code, reading := range readings {
		before := b.limitLocked(code).Value
		b.read[code] = reading
		now := b.limitLocked(code).Value
		changed = changed || now != before
		if now > before {
			maps.DeleteFunc(b.learned, func(s subject, _ lesson) bool { return s.code == code })
		}
	}
	return changed
}

// Used returns how much of a quota the account uses, as the Quota Center showed it last.
func (b *Book) Used(code Code) (used int, known bool) {
	if b == nil {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if reading, ok := b.read[code]; ok && reading.Used != nil {
		return *reading.Used, true
	}
	return 0, false
}

func publishedLimit(code Code) Limit {
	return Limit{Value: published[code], Source: Published, Assumed: true, Abroad: publishedAbroad[code]}
}

// Limit returns the value of a quota.
func (b *Book) Limit(code Code) Limit {
	if b == nil {
		return publishedLimit(code)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limitLocked(code)
}

func (b *Book) limitLocked(code Code) Limit {
	if value, ok := b.configured[code]; ok {
		return Limit{Value: value, Source: Configured}
	}
	if reading, ok := b.read[code]; ok && reading.Value > 0 {
		// Where the Quota Center itself counts more than its value, the value was lowered, and holds.
		return Limit{Value: reading.Value, Source: Center, Assumed: reading.Used == nil || *reading.Used <= reading.Value}
	}
	return publishedLimit(code)
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
		limit.Value, limit.Source, limit.Abroad = found.value, Refusal, 0
	}
	return limit
}

// Learn notes that the cloud refused to let a resource have more than it has. Nil learns nothing.
func (b *Book) Learn(code Code, id string, has int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.learned == nil {
		b.learned = map[subject]lesson{}
	}
	now := time.Now()
	maps.DeleteFunc(b.learned, func(_ subject, l lesson) bool { return !now.Before(l.until) })
	b.learned[subject{code, id}] = lesson{has, now.Add(waits.LoadBalancerFull)}
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
