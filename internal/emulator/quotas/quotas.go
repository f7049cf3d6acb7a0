// Package quotas carries out the actions of the Quota Center: it shows the limits of the store as quotas of the account.
package quotas

import (
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service carries the store whose limits the actions show.
type service struct{ *cloud.Store }

const (
	largestPage = 100
	defaultPage = 30
	// mostDimensions is how many dimensions a call may name.
	mostDimensions = 100
)

// Categories of quotas.
const (
	general   = "CommonQuota"
	rates     = "FlowControl"
	privilege = "WhiteListLabel"
)

// dimensionRegion is the dimension of quotas that an account has in each region, and otherRegion a region that has other ones.
const (
	dimensionRegion = "regionId"
	otherRegion     = "cn-wulanchabu"
)

// Product returns the actions of the Quota Center on a store.
func Product(s *cloud.Store) api.Product {
	return api.Product{Name: "quotas", Version: api.VersionQuotas, Actions: []api.Action{{
		Name: "ListProductQuotas", Kind: api.Read, Run: service{s}.list, Params: append([]api.Param{
			api.Str("ProductCode", api.Required), api.Str("QuotaActionCode"), api.Str("KeyWord"), api.Str("GroupCode"),
			api.Str("QuotaCategory", api.OneOf(general, rates, privilege)),
			api.ObjectsOf("Dimensions", mostDimensions, api.Str("Key"), api.Str("Value")),
		}, api.Tokened("MaxResults", largestPage)...),
	}}}
}

// item is a quota; its field names are the wire's.
type item struct {
	ProductCode, QuotaActionCode, QuotaName, QuotaUnit, QuotaType string
	TotalQuota, TotalUsage                                        float64
	Consumable, Adjustable                                        bool
	Dimensions                                                    map[string]string `json:"Dimensions,omitempty"`

	seq int64
}

// quota is a row of the table: what of the store it shows. used is nil for a quota of each resource.
type quota struct {
	product, code, name string
	limit               int
	used                func(*cloud.Store) int
}

func (s service) table() []quota {
	l := &s.Limits
	return []quota{
		{"slb", "slb_quota_instances_num", "CLB instances", l.LoadBalancers, func(s *cloud.Store) int { return s.LoadBalancers.Len() }},
		{"slb", "slb_quota_listeners_num", "listeners of a CLB instance", l.ListenersPerLB, nil},
		{"slb", "slb_quota_backendservers_num", "backend servers of a CLB instance", l.BackendsPerLB, nil},
		{"slb", "slb_quota_backendserver_attached_num", "CLB instances of a backend server", l.LBsPerInstance, nil},
		{"slb", "slb_quota_domain_extensions_num", "additional domains of a listener", l.DomainExtensions, nil},
		{"slb", "slb_quota_acls_num", "access control lists", l.ACLs, func(s *cloud.Store) int { return s.ACLs.Len() }},
		{"slb", "slb_quota_acl_entries_num", "entries of an access control list", l.ACLEntries, nil},
		{"nlb", "nlb_quota_loadbalancers_num", "NLB instances", l.NLBs, func(s *cloud.Store) int { return s.NLBs.Len() }},
		{"nlb", "nlb_quota_loadbalancer_listeners_num", "listeners of an NLB instance", l.ListenersPerNLB, nil},
		{"nlb", "nlb_quota_loadbalancer_noeci_servers_num", "backend servers of an NLB instance", l.ServersPerNLB, nil},
		{"nlb", "nlb_quota_servergroups_num", "server groups", l.NLBGroups, func(s *cloud.Store) int { return s.NLBGroups.Len() }},
		{"nlb", "nlb_quota_servergroup_noeci_servers_num", "backend servers of a server group", l.ServersPerNLBGroup, nil},
		{"nlb", "nlb_quota_server_added_num", "server groups of a backend server", l.NLBGroupsPerServer, nil},
		{"vpc", "vpc_quota_route_entrys_num", "custom entries of a route table", l.RouteEntriesPerTable, nil},
	}
}

func (s service) list(c *api.Call) (any, error) {
	var found []item
	if c.Str("QuotaCategory") == general || !c.Has("QuotaCategory") && c.Holds("quotas.default-general") {
		found = s.general(c)
	}
	size := c.Int("MaxResults", defaultPage)
	page, next, err := api.TokenPage(c, found, size, func(i item) int64 { return i.seq })
	return struct {
		TotalCount, MaxResults int
		NextToken              string
		Quotas                 []item
	}{len(found), size, next, page}, err
}

// general are the general quotas of a product that the call asks for.
func (s service) general(c *api.Call) []item {
	var found []item
	regions := []string{""}
	if !c.Holds("quotas.no-region") {
		regions = []string{otherRegion, s.Region}
	}
	wanted := map[string]string{}
	for _, dimension := range c.Objects("Dimensions") {
		wanted[dimension.Str("Key")] = dimension.Str("Value")
	}
	for _, row := range s.table() {
		if row.product != c.Str("ProductCode") || c.Has("QuotaActionCode") && row.code != c.Str("QuotaActionCode") ||
			c.Has("KeyWord") && !strings.Contains(row.name, c.Str("KeyWord")) {
			continue
		}
		for _, region := range regions {
			i := s.item(c, row, region)
			if !contains(i.Dimensions, wanted) {
				continue
			}
			i.seq = int64(len(found)) + 1
			found = append(found, i)
		}
	}
	return found
}

// item is a quota in a region, empty for one that the account has in all regions together.
func (s service) item(c *api.Call, row quota, region string) item {
	i := item{
		ProductCode: row.product, QuotaActionCode: row.code, QuotaName: row.name, QuotaUnit: "AMOUNT", QuotaType: "normal",
		TotalQuota: float64(row.limit), Adjustable: true,
	}
	if row.used != nil && c.Holds("quotas.usage") {
		i.Consumable, i.TotalUsage = true, float64(row.used(s.Store))
	}
	if region != "" {
		i.Dimensions = map[string]string{dimensionRegion: region}
	}
	if region == otherRegion { // nobody has anything there
		i.TotalQuota, i.TotalUsage = 1, 0
	}
	return i
}

// contains reports whether a quota has all dimensions that a call asks for.
func contains(has, wanted map[string]string) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), func(key string) bool { return has[key] != wanted[key] })
}
