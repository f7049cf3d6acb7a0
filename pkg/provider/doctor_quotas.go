package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
)

// quotaLine is one quota in the report.
type quotaLine struct {
	code quota.Code
	// of says what there is so much of, used how much is known to be used.
	of   string
	used int
	// atMost says that it may be less.
	atMost bool
}

// quotas shows how much is used of each quota, the one first that is used up first when the cluster grows.
func (e *examination) quotas(ctx context.Context) {
	book := quota.NewBook(e.config.Quotas)
	e.readQuotas(ctx, book)
	lines := slices.Concat(e.balancerLines(ctx, book), e.serviceLines(ctx),
		[]quotaLine{{code: quota.RouteEntries, of: "custom entries of the fullest route table", used: e.routeEntries}})
	lines = slices.DeleteFunc(lines, func(line quotaLine) bool { return line.used == 0 })
	share := func(line quotaLine) float64 {
		return float64(line.used) / float64(max(book.Limit(line.code).Bound(line.used), 1))
	}
	slices.SortStableFunc(lines, func(a, b quotaLine) int { return cmp.Compare(share(b), share(a)) })
	for i, line := range lines {
		limit := book.Limit(line.code)
		status, fix := doctor.OK, ""
		detail := fmt.Sprintf("%d of %d %s (%.0f %%; value: %s)", line.used, limit.Value, line.of, 100*float64(line.used)/float64(max(limit.Value, 1)), limit.Origin())
		if i == 0 {
			detail += "; used up first when the cluster grows"
		}
		if i == 0 || quota.Nearly(line.used, limit.Bound(line.used), false) {
			fix = "request a higher quota before it is used up: " + quota.ConsoleURL
		}
		if line.used >= limit.Value && !line.atMost {
			status, fix = doctor.Wrong, "ask for more: "+quota.ConsoleURL+"; if the account has more already, set Global.quotas in the cloud-config"
		}
		e.add("quotas", string(line.code), status, detail, fix)
	}
}

// readQuotas reads the Quota Center, if the manager may.
func (e *examination) readQuotas(ctx context.Context, book *quota.Book) {
	const subject = "Quota Center"
	if !e.readsQuotas() {
		e.add("quotas", subject, doctor.OK, "not read; configured and published values apply", "")
		return
	}
	for _, product := range []string{alicloud.QuotasOfCLB, alicloud.QuotasOfNLB, alicloud.QuotasOfVPC} {
		found, err := e.client.ListProductQuotas(ctx, product)
		if err != nil {
			e.add("quotas", subject, doctor.Optional, err.Error()+"; configured and published values apply", "allow quotas:ListProductQuotas, or set Global.disableQuotaCenter")
			return
		}
		book.Read(service.QuotaReadings(found))
	}
	e.add("quotas", subject, doctor.OK, "it answers", "")
}

// balancerLines count the load balancers of the whole account, as the cloud does.
func (e *examination) balancerLines(ctx context.Context, book *quota.Book) []quotaLine {
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
		lines = append(lines, quotaLine{code: code, of: of, used: used})
	}
	if !e.settings.WithoutCLB {
		count(quota.CLBs, "CLBs of the account", func() (int, error) {
			all, err := e.client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{})
			return len(all), err
		})
	}
	if !e.settings.WithoutNLB {
		count(quota.NLBs, "NLBs of the account", func() (int, error) {
			all, err := e.client.ListNLBs(ctx, alicloud.NLBQuery{})
			return len(all), err
		})
	}
	return lines
}

// serviceLines say what Services use on the fullest load balancers: a listener for each port, and with externalTrafficPolicy Local up to one backend server on
// each node for each port. Where the manager may choose the nodes, it keeps within the quota by itself.
func (e *examination) serviceLines(ctx context.Context) []quotaLine {
	if e.kube == nil {
		return nil
	}
	list, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // the checks of the cluster say so
	}
	nodes := len(e.nodeList(ctx))
	most, ports := map[quota.Code]int{}, map[string]int{}
	for i := range list.Items {
		svc := &list.Items[i]
		listeners, backends, ok := e.quotasOf(svc)
		if !ok {
			continue
		}
		on := cmp.Or(svc.Labels[service.LabelLoadBalancerID], string(svc.UID)) // Services may share a load balancer
		ports[on] += len(svc.Spec.Ports)
		most[listeners] = max(most[listeners], ports[on])
		if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			most[backends] = max(most[backends], len(svc.Spec.Ports)*nodes)
		}
	}
	var lines []quotaLine
	for _, line := range []quotaLine{
		{code: quota.ListenersPerCLB, of: "listeners of the CLB that has the most for Services"},
		{code: quota.BackendsPerCLB, of: "backend servers of a Service with externalTrafficPolicy Local, if it has pods on every node", atMost: true},
		{code: quota.ListenersPerNLB, of: "listeners of the NLB that has the most for Services"},
		{code: quota.ServersPerNLB, of: "backend servers of a Service with an NLB and externalTrafficPolicy Local, if it has pods on every node", atMost: true},
	} {
		if line.used = most[line.code]; line.used > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// quotasOf returns the quotas that count the listeners and the backend servers of a Service, false for one that is not the manager's.
func (e *examination) quotasOf(svc *corev1.Service) (listeners, backends quota.Code, ok bool) {
	gates := config.Config{TypeAnnotation: e.config.TypeAnnotation}
	switch {
	case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return "", "", false
	case nlb.Product.AskedBy(gates, svc):
		return quota.ListenersPerNLB, quota.ServersPerNLB, !e.settings.WithoutNLB
	default:
		return quota.ListenersPerCLB, quota.BackendsPerCLB, !e.settings.WithoutCLB && slb.Product.Wants(svc)
	}
}
