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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
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
	// grows says that it is no limit: where it is used up, a load balancer group opens another load balancer.
	grows bool
}

// isFull reports whether nothing of the quota is left.
func (l quotaLine) isFull(book *quota.Book) bool { return l.used >= book.Limit(l.code).Bound(l.used) }

// quotas shows how much is used of each quota, the one first that is used up first when the cluster grows.
func (e *examination) quotas(ctx context.Context) {
	book := quota.NewBook(e.config.Quotas)
	e.readQuotas(ctx, book)
	uses := e.serviceUses(ctx)
	account := e.accountLines(ctx, book, uses)
	lines := slices.Concat(account, uses.lines(func(code quota.Code) bool {
		return slices.ContainsFunc(account, func(line quotaLine) bool { return line.code == code && line.isFull(book) })
	}), []quotaLine{{code: quota.RouteEntries, of: "custom entries of the fullest route table", used: e.routeEntries}})
	lines = slices.DeleteFunc(lines, func(line quotaLine) bool { return line.used == 0 })
	share := func(line quotaLine) float64 {
		if line.grows {
			return 0
		}
		return float64(line.used) / float64(max(book.Limit(line.code).Bound(line.used), 1))
	}
	slices.SortStableFunc(lines, func(a, b quotaLine) int { return cmp.Compare(share(b), share(a)) })
	for i, line := range lines {
		limit := book.Limit(line.code)
		status, fix := doctor.OK, ""
		detail := fmt.Sprintf("%d of %d %s (%.0f %%; value: %s)", line.used, limit.Value, line.of, 100*float64(line.used)/float64(max(limit.Value, 1)), limit.Origin())
		if i == 0 && !line.grows {
			detail += "; used up first when the cluster grows"
		}
		if !line.grows && (i == 0 || quota.Nearly(line.used, limit.Bound(line.used), false)) {
			fix = "request a higher quota before it is used up: " + quota.ConsoleURL
		}
		if line.used >= limit.Value && !line.atMost && !line.grows {
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
		lines = append(lines, quotaLine{code: code, of: of, used: max(used, uses.account[code])})
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

// serviceUses are what Services use of the quotas of load balancers and instances, as far as the manager does not choose their nodes: where it does, it keeps
// within the quotas by itself. Services may share a load balancer, so that the keys are load balancers, by their ids or else by the UIDs of their Services.
type serviceUses struct {
	balancers map[string]*balancerUses
	// most is how much the load balancer, or the instance, uses that uses most; account is what all Services need of the quotas of the account.
	most, account map[quota.Code]int
}

// balancerUses are what Services use of one load balancer.
type balancerUses struct {
	product        service.Product
	ports, servers int
	// counted says that a Service has nodes that nobody chooses, fixed that one asks for no other load balancer where this one has no room.
	counted, fixed bool
}

// serviceUses counts what Services use: a listener for each port, and up to one backend server on each node for each port.
func (e *examination) serviceUses(ctx context.Context) *serviceUses {
	uses := &serviceUses{balancers: map[string]*balancerUses{}, most: map[quota.Code]int{}, account: map[quota.Code]int{}}
	if e.kube == nil {
		return uses
	}
	list, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return uses // the checks of the cluster say so
	}
	nodes := len(e.nodeList(ctx))
	for i := range list.Items {
		svc := &list.Items[i]
		if product, ok := e.productOf(svc); ok {
			uses.add(svc, product, nodes, e.choosesNodes(svc))
		}
	}
	return uses
}

// lines say what Services use on the fullest load balancers, and of instances. isFull reports whether the account can have no more of something: then no group opens
// another load balancer.
func (u *serviceUses) lines(isFull func(quota.Code) bool) []quotaLine {
	growing := map[quota.Code]int{}
	for _, of := range u.balancers {
		into := u.most
		if !of.fixed && !isFull(of.product.BalancerQuota) {
			into = growing
		}
		into[of.product.ListenerQuota] = max(into[of.product.ListenerQuota], of.ports)
	}
	const (
		unchosen = "for Services that use no subset of the nodes; with externalTrafficPolicy Local, if they have pods on every node"
		opens    = "of the load balancer group that has the most; for further Services, the group opens another one"
	)
	lines := []quotaLine{
		{code: quota.ListenersPerCLB, of: "listeners of the CLB that has the most for Services"},
		{code: quota.BackendsPerCLB, of: "backend servers of the CLB that has the most " + unchosen, atMost: true},
		{code: quota.CLBsPerInstance, of: "CLBs that a node is behind " + unchosen, atMost: true},
		{code: quota.ListenersPerNLB, of: "listeners of the NLB that has the most for Services"},
		{code: quota.ServersPerNLB, of: "backend servers of the NLB that has the most " + unchosen, atMost: true},
		{code: quota.GroupsPerServer, of: "server groups of NLBs that a node is in " + unchosen, atMost: true},
	}
	for i := range lines {
		lines[i].used = u.most[lines[i].code]
	}
	return append(lines,
		quotaLine{code: quota.ListenersPerCLB, of: "listeners of the CLB " + opens, used: growing[quota.ListenersPerCLB], grows: true},
		quotaLine{code: quota.ListenersPerNLB, of: "listeners of the NLB " + opens, used: growing[quota.ListenersPerNLB], grows: true})
}

// add counts a Service. chosen says that the manager chooses its nodes.
func (u *serviceUses) add(svc *corev1.Service, product service.Product, nodes int, chosen bool) {
	id, ports := cmp.Or(svc.Labels[service.LabelLoadBalancerID], string(svc.UID)), len(svc.Spec.Ports)
	if u.balancers[id] == nil {
		u.balancers[id] = &balancerUses{product: product}
	}
	on := u.balancers[id]
	on.ports, on.fixed = on.ports+ports, on.fixed || !annotation.GroupOverflows(svc)
	switch {
	case product.AttachedPerGroup:
		u.account[quota.NLBGroups] += ports
	case hasAccessList(svc):
		u.account[quota.ACLs]++
	}
	if chosen {
		return
	}
	switch {
	case product.AttachedPerGroup:
		u.most[product.AttachmentQuota] += ports
	case !on.counted:
		u.most[product.AttachmentQuota]++
	}
	on.counted, on.servers = true, on.servers+ports*nodes
	u.most[product.BackendQuota] = max(u.most[product.BackendQuota], on.servers)
}

// hasAccessList reports whether a Service with a CLB has an access control list of its own.
func hasAccessList(svc *corev1.Service) bool {
	_, named := annotation.Lookup(svc.Annotations, annotation.ACLID)
	return len(annotation.SourceRangesOf(svc)) > 0 && !named
}

// choosesNodes reports whether the manager chooses which nodes are backends of a Service, or whether these are no nodes.
func (e *examination) choosesNodes(svc *corev1.Service) bool {
	if kind, _ := annotation.BackendTypeOf(svc.Annotations); backend.OnPods(annotation.Params{BackendType: kind}, e.config.BackendENI || e.env.BackendENI, false, nil) {
		return true
	}
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		return false
	}
	text, _ := annotation.Lookup(svc.Annotations, annotation.BackendSubset)
	if subset, ok := backend.ParseSubset(text); ok {
		return subset != backend.SubsetOff
	}
	return e.config.BackendSubset != backend.SubsetOff
}

// productOf returns the product of the load balancer of a Service, false for one that is not the manager's.
func (e *examination) productOf(svc *corev1.Service) (product service.Product, ok bool) {
	switch {
	case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return service.Product{}, false
	case nlb.Product.AskedBy(config.Config{TypeAnnotation: e.config.TypeAnnotation}, svc):
		return nlb.Product, !e.settings.WithoutNLB
	}
	return slb.Product, !e.settings.WithoutCLB && slb.Product.Wants(svc)
}
