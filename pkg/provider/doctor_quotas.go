package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// growth is with what the use of a quota grows.
type growth string

// The values of growth. Listeners of one Service, for example, grow with nothing.
const (
	withNodes    growth = "nodes join"
	withServices growth = "Services are added"
)

// quotaLine is one quota in the report.
type quotaLine struct {
	code quota.Code
	// of says what there is so much of, used how much is known to be used, or needed; proven is how much of that is known to be in the cloud.
	of           string
	used, proven int
	// atMost says that it may be less.
	atMost bool
	// copes says that it is no limit: where it is used up, the manager uses another load balancer, or other nodes.
	copes bool
	grows growth
}

// unknown reports whether more is used than the value says, so that the value that holds is larger: for sure, or if as much is used as it
// may be. That alone does not put what the Quota Center says in doubt.
func (l quotaLine) unknown(limit quota.Limit) bool {
	return limit.Exceeded(l.proven) || l.atMost && limit.Exceeded(l.used) && limit.Source != quota.Center
}

// isFull reports whether nothing of the quota is left.
func (l quotaLine) isFull(book *quota.Book) bool {
	limit := book.Limit(l.code)
	return !l.unknown(limit) && l.used >= limit.Bound(l.used)
}

// share is how much of the quota is used, -1 where that is not known, or no limit.
func (l quotaLine) share(book *quota.Book) float64 {
	limit := book.Limit(l.code)
	if l.copes || l.unknown(limit) {
		return -1
	}
	return float64(l.used) / float64(max(limit.Bound(l.used), 1))
}

// quotas shows how much is used of each quota, the one first of which the largest share is used.
func (e *examination) quotas(ctx context.Context) {
	book := quota.NewBook(e.config.Quotas)
	e.readQuotas(ctx, book)
	uses := e.serviceUses(ctx, book)
	account := e.accountLines(ctx, book, uses)
	lines := slices.Concat(account, uses.lines(book, func(code quota.Code) bool {
		return slices.ContainsFunc(account, func(line quotaLine) bool { return line.code == code && line.isFull(book) })
	}), []quotaLine{{code: quota.RouteEntries, of: "custom entries of the fullest route table", used: e.routeEntries, proven: e.routeEntries,
		grows: withNodes}})
	lines = slices.DeleteFunc(lines, func(line quotaLine) bool { return line.used == 0 })
	slices.SortStableFunc(lines, func(a, b quotaLine) int { return cmp.Compare(b.share(book), a.share(book)) })
	first := map[growth]bool{}
	for _, line := range lines {
		is := line.grows != "" && !first[line.grows] && line.share(book) >= 0
		first[line.grows] = first[line.grows] || is
		e.quota(line, book.Limit(line.code), is)
	}
}

// quota shows one quota. first says that of those that grow with the same, the largest share is used of it: if all grow alike, it is used
// up before the others.
func (e *examination) quota(line quotaLine, limit quota.Limit, first bool) {
	bound := limit.Bound(line.used)
	detail := fmt.Sprintf("%d of %d %s (%.0f %%; value: %s)", line.used, bound, line.of, 100*float64(line.used)/float64(max(bound, 1)),
		limit.Origin(line.used))
	full := line.used >= bound && !line.atMost && !line.copes
	known := ""
	if advice := limit.Advice(); advice != "" {
		known = "; if the account has more already, " + advice
	}
	status, fix := doctor.OK, ""
	switch {
	case line.unknown(limit):
		e.add(doctor.AreaQuotas, string(line.code), doctor.OK, unknownText(line, limit),
			"to make the limit known, "+cmp.Or(limit.Advice(), "set Global.quotas in the cloud-config"))
		return
	case full && line.used >= limit.Value:
		status, fix = doctor.Wrong, "ask for more: "+alicloud.QuotaConsole+known
	case !line.copes && (first || quota.Nearly(line.used, bound, false)):
		fix = "request a higher quota before it is used up: " + alicloud.QuotaConsole + known
	}
	if first && !full {
		detail += "; used up first as " + string(line.grows)
	}
	e.add(doctor.AreaQuotas, string(line.code), status, detail, fix)
}

// unknownText says how much is used of a quota whose value is not known.
func unknownText(line quotaLine, limit quota.Limit) string {
	if limit.Exceeded(line.proven) {
		return fmt.Sprintf("%d %s; the limit is unknown, and larger than the assumed %d (value: %s)", max(line.used, line.proven), line.of,
			limit.Value, limit.Origin(line.used))
	}
	return fmt.Sprintf("up to %d %s; if there are more than the assumed %d (value: %s), the limit is larger, and unknown", line.used, line.of,
		limit.Value, limit.Origin(line.used))
}

// readQuotas reads the Quota Center, if the manager may.
func (e *examination) readQuotas(ctx context.Context, book *quota.Book) {
	const subject = "Quota Center"
	if !e.readsQuotas() {
		e.add(doctor.AreaQuotas, subject, doctor.OK, "not read; configured and published values apply", "")
		return
	}
	for _, product := range []string{alicloud.QuotasOfCLB, alicloud.QuotasOfNLB, alicloud.QuotasOfVPC} {
		found, err := e.client.ListProductQuotas(ctx, product)
		if err != nil {
			e.add(doctor.AreaQuotas, subject, doctor.Optional, err.Error()+"; configured and published values apply",
				"allow quotas:ListProductQuotas, or set Global.disableQuotaCenter")
			return
		}
		book.Read(service.QuotaReadings(found))
	}
	e.add(doctor.AreaQuotas, subject, doctor.OK, "it answers", "")
}

// accountLines count what the whole account has, as the cloud does, or what Services need if that is more.
func (e *examination) accountLines(ctx context.Context, book *quota.Book, uses *serviceUses) []quotaLine {
	var lines []quotaLine
	count := func(code quota.Code, of string, list func() (int, error)) {
		used, known := book.Used(code)
		if !known {
			n, err := list()
			if err != nil {
				return // the checks of permissions say so
			}
			used = n
		}
		lines = append(lines,
			quotaLine{code: code, of: of, used: max(used, uses.account[code]), proven: max(used, uses.made[code]), grows: withServices})
	}
	if !e.settings.WithoutCLB {
		count(quota.CLBs, "CLBs of the account", func() (int, error) {
			all, err := e.client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{})
			return len(all), err
		})
		lists := "access control lists of the account"
		if _, known := book.Used(quota.ACLs); !known { // the API lists those with a tag
			lists = "access control lists that Services need"
		}
		count(quota.ACLs, lists, func() (int, error) { return 0, nil })
	}
	if !e.settings.WithoutNLB {
		count(quota.NLBs, "NLBs of the account", func() (int, error) {
			all, err := e.client.ListNLBs(ctx, alicloud.NLBQuery{})
			return len(all), err
		})
		count(quota.NLBGroups, "server groups of NLBs of the account", func() (int, error) {
			all, err := e.client.ListNLBGroups(ctx, alicloud.NLBGroupQuery{})
			return len(all), err
		})
	}
	return lines
}
