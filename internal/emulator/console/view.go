package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
)

// shown is how many things a list of the page holds. What a filter leaves out is counted, so that nobody takes the page
// for everything.
const shown = 100

// view is everything that the page shows, copied out of the store.
type view struct {
	Region, Account, Query string
	// Only is which calls are shown: writes, errors, or all ("").
	Only           string
	Services       list[service]
	Shared         list[sharedBalancer]
	LoadBalancers  list[loadBalancer]
	NLBs           list[networkLoadBalancer]
	UnusedGroups   list[nlbGroup]
	Jobs           list[job]
	SecurityGroups list[securityGroup]
	AccessLists    list[accessList]
	Certificates   list[certificate]
	EIPs           list[eip]
	Tables         list[table]
	Instances      list[instance]
	Calls          []call
	Limited        bool
	Windows        []limits.Usage
	Totals         []total
}

// total is one figure of the summary.
type total struct {
	Name, Anchor string
	Count        int
	// Note is what is wrong, "" when nothing is.
	Note string
}

// list is the part of a list that is shown.
type list[T any] struct {
	Items []T
	Total int
}

// Hidden is how many items match and are not shown.
func (l list[T]) Hidden() int { return l.Total - len(l.Items) }

// filtered keeps the items that a query names, up to the number that is shown.
type filtered[T any] struct {
	list[T]
	query string
}

// offer adds an item when one of its words contains the query; copied is called only for what is shown.
func (l *filtered[T]) offer(copied func() T, words ...string) {
	if l.query != "" && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), l.query) }) {
		return
	}
	if l.Total++; l.Total <= shown {
		l.Items = append(l.Items, copied())
	}
}

// Values of the parameter calls of the page.
const (
	onlyWrites = "writes"
	onlyErrors = "errors"
)

// view reads the cloud. The parameter q filters everything by names, ids and addresses, and calls chooses among the calls.
func (c *Console) view(parameters url.Values, now time.Time) view {
	s := c.options.Store
	query, only := strings.TrimSpace(parameters.Get("q")), parameters.Get("calls")
	if only != onlyWrites && only != onlyErrors {
		only = ""
	}
	v := view{Region: s.Region, Account: s.AccountID, Query: query, Only: only, Limited: c.options.Windows != nil,
		Windows: c.options.Windows.Usage(now)}
	lower := strings.ToLower(query)
	var failing, unhealthy, bad, entries, off, instances, lbs, nlbs, busy int
	s.View(func() {
		balancers := c.balancers(now)
		v.Services, bad = c.services(balancers, lower)
		v.Shared = c.shared(balancers, lower)
		v.LoadBalancers, failing = c.loadBalancers(lower, now)
		v.NLBs, unhealthy = c.networkLoadBalancers(lower, now)
		v.UnusedGroups = c.unusedGroups(lower, now)
		v.Jobs, busy = c.jobs(lower, now)
		v.SecurityGroups = c.securityGroups(lower)
		v.AccessLists, v.Certificates, v.EIPs = c.accessLists(lower), c.certificates(lower, now), c.eips(lower, now)
		v.Tables, entries = c.tables(lower, now)
		v.Instances, off = c.instances(lower, now)
		instances, lbs, nlbs = s.Instances.Len(), s.LoadBalancers.Len(), s.NLBs.Len()
	})
	last := shown
	if only != "" || lower != "" {
		last = searched
	}
	v.Calls = calls(c.options.Journal.Last(last), only, lower)
	v.Totals = []total{
		{noun(v.Services.Total, "Service", "Services"), "services", v.Services.Total, note(bad, "backend server fails", "backend servers fail")},
		{noun(lbs, "Load balancer", "Load balancers"), "loadbalancers", lbs,
			note(failing, "abnormal backend server", "abnormal backend servers")},
		{noun(nlbs, "Network load balancer", "Network load balancers"), "networkloadbalancers", nlbs,
			note(unhealthy, "unhealthy backend server", "unhealthy backend servers")},
		{noun(busy, "Job in progress", "Jobs in progress"), "jobs", busy, ""},
		{noun(entries, "Route entry", "Route entries"), "routes", entries, ""},
		{noun(instances, "Instance", "Instances"), "instances", instances, note(off, "not running", "not running")},
	}
	return v
}

func note(n int, one, many string) string {
	if n == 0 {
		return ""
	}
	return count(n, one, many)
}

func count(n int, one, many string) string { return strconv.Itoa(n) + " " + noun(n, one, many) }

func noun(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// call is a line of the journal.
type call struct {
	journal.Call
	Parameters []parameter
}

// OK reports whether the call did what it was asked to.
func (c call) OK() bool { return c.Code == "" && c.Dropped == "" }

type parameter struct{ Name, Value string }

// searched is how many calls are searched for those that match: the page is made twice a second.
const searched = 5000

// calls returns the last ones that match, newest first.
func calls(last []journal.Call, only, query string) []call {
	var lines []call
	for _, j := range last {
		line := call{Call: j}
		if len(lines) == shown {
			break
		}
		if only == onlyWrites && j.Kind != api.Write || only == onlyErrors && line.OK() {
			continue
		}
		if query != "" && !strings.Contains(strings.ToLower(j.Product+" "+j.Action+" "+j.Code+" "+text(j.Parameters)), query) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(j.Parameters)) {
			line.Parameters = append(line.Parameters, parameter{name, j.Parameters[name]})
		}
		lines = append(lines, line)
	}
	return lines
}

func text(p api.Params) string { return strings.Join(slices.Collect(maps.Values(p)), " ") }
