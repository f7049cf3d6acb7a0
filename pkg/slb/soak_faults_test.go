package slb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

const (
	// soakHand is the access key of the person who changes things in the console.
	soakHand = "hand"
	// soakBadNode is a node that the cloud accepts as no backend server.
	soakBadNode = "bad"
)

// soakCloud is a cloud with a second VPC, whose instances it refuses as backend servers, and with a second access key.
func soakCloud(tb testing.TB, seed uint64) *emulatortest.Cloud {
	tb.Helper()
	config := cloud.DefaultConfig()
	config.Quotas = soakQuotas
	config.VPCs = append(config.VPCs, cloud.VPCConfig{ID: "vpc-other", CIDR: "172.16.0.0/12"})
	config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: "vtb-other", VPCID: "vpc-other"})
	config.VSwitches = append(config.VSwitches,
		cloud.VSwitchConfig{ID: "vsw-other", VPCID: "vpc-other", Zone: "cn-hangzhou-a", CIDR: "172.16.0.0/16"})
	config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: soakHand, Secret: soakHand})
	config.OtherVPCCode = []string{"", "InvalidBackendServers.Inconsistent", "SomethingNew"}[seed%3]
	config.AttachedQuotaCode = []string{"", "OverQuota"}[seed%2]
	return emulatortest.New(tb, emulator.Options{Config: config})
}

// soakQuotas leave room for everything.
var soakQuotas = cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000, BackendsPerLB: 200}

// soakFaults are the faults that were injected, and how often each has hit.
type soakFaults struct {
	// next are those to come before any comes again, rules the names of those injected, in the order of the emulator.
	next  []soakFault
	rules []string
	hits  map[string]int
	// acts counts what was changed by hand.
	acts int
}

func (f *soakFaults) count(name string, n int) {
	if f.hits == nil {
		f.hits = map[string]int{}
	}
	f.hits[name] += n
}

// soakFault makes some calls go wrong.
type soakFault struct {
	name string
	rule map[string]any
}

func soakFaultKinds() []soakFault {
	return []soakFault{
		{"internal error", map[string]any{"code": "InternalError", "status": 500}},
		{"call lost", map[string]any{"drop": "before"}},
		{"answer lost", map[string]any{"drop": "after"}},
		{"answer of a write lost", map[string]any{"kind": "write", "drop": "after"}},
		{"busy", map[string]any{"code": "SystemBusy"}},
		{"refused", map[string]any{"code": "OperationDenied"}},
		{"slow", map[string]any{"latency": "2s"}},
		{"read refused", map[string]any{"kind": "read", "code": "ServiceUnavailable", "status": 503}},
		{"throttled", map[string]any{"code": "Throttling.User"}},
		{"empty body", map[string]any{"body": ""}},
		{"empty body of a read", map[string]any{"kind": "read", "body": ""}},
		{"empty object", map[string]any{"body": "{}"}},
		{"not found by id", map[string]any{"action": "DescribeLoadBalancerAttribute", "code": "InvalidLoadBalancerId.NotFound", "status": 404}},
		{"list lacks what is new", map[string]any{"kind": "read", "stale": "20s"}},
	}
}

// breakCalls makes some calls to come go wrong. Each kind of fault comes before any comes again.
func (s *soak) breakCalls() {
	s.t.Helper()
	if len(s.faults.next) == 0 {
		s.faults.next = soakFaultKinds()
		s.random.Shuffle(len(s.faults.next), func(i, j int) {
			s.faults.next[i], s.faults.next[j] = s.faults.next[j], s.faults.next[i]
		})
	}
	fault := s.faults.next[0]
	s.faults.next = s.faults.next[1:]
	rule := map[string]any{"action": "*", "after": s.random.IntN(5), "times": 1 + s.random.IntN(3)}
	maps.Copy(rule, fault.rule)
	s.fault(rule)
	s.faults.rules = append(s.faults.rules, fault.name)
	if len(s.faults.rules) >= soakRules {
		s.collectHits()
	}
}

// soakRules is how many rules the emulator has before they are counted and dropped: it goes through all of them at every call.
const soakRules = 50

// collectHits counts the calls that the injected faults have hit, and drops the faults.
func (s *soak) collectHits() {
	s.t.Helper()
	var answer struct{ Faults []struct{ Hit int } }
	s.read("faults", &answer)
	for i, fault := range answer.Faults {
		s.faults.count(s.faults.rules[i], fault.Hit)
	}
	s.emulator.Admin(http.MethodDelete, "/_emulator/faults", "")
	s.faults.rules = nil
}

// soakPhase is what the cloud does for a while.
type soakPhase struct {
	name  string
	until time.Time
	next  []string
}

// soakPhases are the settings of each phase. A phase without any has the bad node in the cluster.
var soakPhases = map[string]func(*emulator.Settings, *rand.Rand){
	phaseTagSearchLag: func(s *emulator.Settings, r *rand.Rand) {
		s.TagSearchLag = cloud.Duration(time.Duration(1+r.IntN(30)) * time.Second)
	},
	phaseReplicaLag: func(s *emulator.Settings, r *rand.Rand) {
		s.ReplicaLag = cloud.Duration(time.Duration(1+r.IntN(3)) * time.Second)
	},
	phaseBackendQuota:   func(s *emulator.Settings, r *rand.Rand) { s.Quotas.BackendsPerLB = 2 + r.IntN(6) },
	phaseInstanceQuota:  func(s *emulator.Settings, r *rand.Rand) { s.Quotas.LBsPerInstance = 1 + r.IntN(3) },
	phaseNodeOfOtherVPC: func(*emulator.Settings, *rand.Rand) {},
}

const (
	phaseTagSearchLag   = "search by tag lags"
	phaseReplicaLag     = "replicas lag"
	phaseBackendQuota   = "quota of backend servers reached"
	phaseInstanceQuota  = "instance at its quota"
	phaseNodeOfOtherVPC = "node of another VPC"
)

// beginPhase ends the phase that lasts, and begins another one. Each comes before any comes again.
func (s *soak) beginPhase() {
	s.t.Helper()
	s.endPhase()
	if len(s.phase.next) == 0 {
		s.phase.next = slices.Sorted(maps.Keys(soakPhases))
		s.random.Shuffle(len(s.phase.next), func(i, j int) { s.phase.next[i], s.phase.next[j] = s.phase.next[j], s.phase.next[i] })
	}
	s.phase.name, s.phase.next = s.phase.next[0], s.phase.next[1:]
	s.phase.until = time.Now().Add(time.Duration(5+s.random.IntN(15)) * time.Second)
	s.emulator.Change(func(settings *emulator.Settings) { soakPhases[s.phase.name](settings, s.random) })
	if s.phase.name == phaseNodeOfOtherVPC {
		s.join(soakBadNode, "vsw-other")
	}
}

// endPhase goes back to a cloud that works. Quotas stay as they were otherwise.
func (s *soak) endPhase() {
	s.t.Helper()
	s.phase.until = time.Time{}
	s.emulator.Change(func(settings *emulator.Settings) {
		settings.TagSearchLag, settings.ReplicaLag = 0, 0
		settings.Quotas.BackendsPerLB, settings.Quotas.LBsPerInstance = soakQuotas.BackendsPerLB, soakQuotas.LBsPerInstance
	})
	s.dismiss(soakBadNode)
}

// meddle changes something in the cloud as a person does in the console.
func (s *soak) meddle() {
	s.t.Helper()
	client, ctx := s.hand(), s.t.Context()
	s.faults.acts++
	all, err := client.DescribeLoadBalancers(ctx, queryAll())
	if err != nil || len(all) == 0 {
		return // a fault hit this call
	}
	lb := all[s.random.IntN(len(all))]
	// What a fault does to these calls is one more thing that may happen.
	switch s.faults.acts % 5 {
	case 0:
		if err := client.SetDeleteProtection(ctx, lb.ID, "off"); err == nil {
			_ = client.DeleteLoadBalancer(ctx, lb.ID) //nolint:errcheck // see above
		}
	case 1:
		listeners, _ := client.DescribeListeners(ctx, lb.ID) //nolint:errcheck // see above
		for _, listener := range listeners[lb.ID] {
			_ = client.DeleteListener(ctx, lb.ID, listener.ListenerKey) //nolint:errcheck // see above
		}
	case 2: //nolint:mnd // of five
		s.removeTags(lb)
	case 3: //nolint:mnd // of five
		s.removeTags(lb)
		s.faults.count("restart of the manager", 1)
		s.stop()
		s.start()
	default:
		groups, _ := client.DescribeVServerGroups(ctx, lb.ID) //nolint:errcheck // see above
		for _, group := range groups {
			full, _ := client.DescribeVServerGroup(ctx, group.ID)                                //nolint:errcheck // see above
			_ = client.RemoveBackends(ctx, group.ID, full.Backends[:min(1, len(full.Backends))]) //nolint:errcheck // see above
		}
	}
}

// removeTags removes all tags of a CLB, or the one that says whose it is.
func (s *soak) removeTags(lb alicloud.LoadBalancer) {
	tags := map[string]string{}
	if s.random.IntN(2) == 0 {
		for _, tag := range lb.Tags {
			tags[tag.Key] = tag.Value
		}
		delete(tags, mark.TagOwner)
	}
	if s.emulator.SetLoadBalancerTags(lb.ID, tags) {
		s.faults.count("tags removed by hand", 1)
	}
}

// hand is the client of the person at the console.
func (s *soak) hand() *alicloud.Client {
	s.t.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: alicloud.StaticCredentials{AccessKeyID: soakHand, AccessKeySecret: soakHand},
		Transport: s.emulator.Transport(),
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "cloud", VPC: "cloud", ECS: "cloud"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// enoughForEveryFault is how long a soak must be for every fault to hit something, whatever the seed.
const enoughForEveryFault = 20 * time.Minute

// hits says how often each fault hit, and fails a long test for one that never did.
func (s *soak) hits() string {
	s.t.Helper()
	for name, n := range s.witness.hits {
		s.faults.count(name, n)
	}
	wanted := slices.Concat(slices.Collect(maps.Keys(soakPhases)), soakActs)
	for _, kind := range soakFaultKinds() {
		wanted = append(wanted, kind.name)
	}
	for _, name := range wanted {
		if s.faults.hits[name] > 0 {
			continue
		}
		if *soakFor >= enoughForEveryFault {
			s.t.Errorf("%s: has hit nothing", name)
		}
		s.faults.count(name, 0)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(s.faults.hits)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, s.faults.hits[name]))
	}
	return strings.Join(texts, ", ")
}

// soakActs are the disturbances besides faults and phases.
var soakActs = []string{
	"restart of the manager", "tags removed by hand", "CLB deleted by hand", "listener deleted by hand", "backend server removed by hand",
}
