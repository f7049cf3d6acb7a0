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

// serviceUses are what Services use of the quotas of load balancers and instances, as far as the manager does not choose their nodes: where it does, it keeps
// within the quotas by itself. Services may share a load balancer, so that the keys are load balancers, by their ids or else by the UIDs of their Services.
type serviceUses struct {
	ports, servers map[string]int
	// most is how much the load balancer, or the instance, uses that uses most.
	most map[quota.Code]int
}

// serviceLines say what Services use on the fullest load balancers, and of instances: a listener for each port, and up to one backend server on each node for each
// port.
func (e *examination) serviceLines(ctx context.Context) []quotaLine {
	if e.kube == nil {
		return nil
	}
	list, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // the checks of the cluster say so
	}
	nodes := len(e.nodeList(ctx))
	uses := serviceUses{ports: map[string]int{}, servers: map[string]int{}, most: map[quota.Code]int{}}
	for i := range list.Items {
		svc := &list.Items[i]
		if product, ok := e.productOf(svc); ok {
			uses.add(svc, product, nodes, e.choosesNodes(svc))
		}
	}
	const unchosen = "for Services that use no subset of the nodes; with externalTrafficPolicy Local, if they have pods on every node"
	lines := []quotaLine{
		{code: quota.ListenersPerCLB, of: "listeners of the CLB that has the most for Services"},
		{code: quota.BackendsPerCLB, of: "backend servers of the CLB that has the most " + unchosen, atMost: true},
		{code: quota.CLBsPerInstance, of: "CLBs that a node is behind " + unchosen, atMost: true},
		{code: quota.ListenersPerNLB, of: "listeners of the NLB that has the most for Services"},
		{code: quota.ServersPerNLB, of: "backend servers of the NLB that has the most " + unchosen, atMost: true},
		{code: quota.GroupsPerServer, of: "server groups of NLBs that a node is in " + unchosen, atMost: true},
	}
	for i := range lines {
		lines[i].used = uses.most[lines[i].code]
	}
	return lines
}

// add counts a Service. chosen says that the manager chooses its nodes.
func (u *serviceUses) add(svc *corev1.Service, product service.Product, nodes int, chosen bool) {
	on, ports := cmp.Or(svc.Labels[service.LabelLoadBalancerID], string(svc.UID)), len(svc.Spec.Ports)
	u.ports[on] += ports
	u.most[product.ListenerQuota] = max(u.most[product.ListenerQuota], u.ports[on])
	if chosen {
		return
	}
	servers, counted := u.servers[on]
	switch {
	case product.AttachedPerGroup:
		u.most[product.AttachmentQuota] += ports
	case !counted:
		u.most[product.AttachmentQuota]++
	}
	u.servers[on] = servers + ports*nodes
	u.most[product.BackendQuota] = max(u.most[product.BackendQuota], u.servers[on])
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
