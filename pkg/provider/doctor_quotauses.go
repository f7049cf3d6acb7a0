package provider

import (
	"cmp"
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
)

// serviceUses are what Services use of the quotas of load balancers and instances. Services may share a load balancer, so that the keys are
// load balancers, by their ids or else by the UIDs of their Services.
type serviceUses struct {
	balancers map[string]*balancerUses
	// most is how much the load balancer, or the instance, uses that uses most, as far as the manager does not choose nodes: where it does, it
	// keeps within the quotas by itself. account is what all Services need of the quotas of the account, and made what of that is known to be
	// in the cloud.
	most, account, made map[quota.Code]int
	// chosen is how many times an instance is a backend on average because the manager has chosen it.
	chosen map[quota.Code]float64
}

// balancerUses are what Services use of one load balancer.
type balancerUses struct {
	product        driver.Product
	ports, servers int
	// listeners are those ports that are known to have a listener: the manager says that the load balancer matches the Service.
	listeners int
	// nodes is how many nodes the manager chooses for it.
	nodes int
	// counted says that a Service has nodes that nobody chooses, fixed that one asks for no other load balancer where this one has no room,
	// shared that further Services may have listeners there.
	counted, fixed, shared bool
	services               int
}

// serviceUses counts what Services use: a listener for each port, and up to one backend server on each node for each port.
func (e *examination) serviceUses(ctx context.Context, book *quota.Book) *serviceUses {
	uses := &serviceUses{balancers: map[string]*balancerUses{}, most: map[quota.Code]int{}, account: map[quota.Code]int{},
		made: map[quota.Code]int{}, chosen: map[quota.Code]float64{}}
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
			uses.add(svc, product, nodes, e.subsetOf(svc, product, nodes, book))
		}
	}
	uses.choose(nodes)
	return uses
}

// lines say what Services use on the fullest load balancers, and of instances. isFull reports whether the account can have no more of
// something: then no group opens another load balancer.
func (u *serviceUses) lines(book *quota.Book, isFull func(quota.Code) bool) []quotaLine {
	const (
		everywhere = "for Services that use no subset of the nodes; with externalTrafficPolicy Local, if they have pods on every node"
		opens      = "of the load balancer group that has the most; for further Services, the group opens another one"
		chosen     = "on average with Services for which the manager chooses the nodes; it keeps within the quota"
	)
	lines := []quotaLine{
		{code: quota.BackendsPerCLB, of: "backend servers of the CLB that has the most " + everywhere, grows: withNodes},
		{code: quota.CLBsPerInstance, of: "CLBs that a node is behind " + everywhere, grows: withServices},
		{code: quota.ServersPerNLB, of: "backend servers of the NLB that has the most " + everywhere, grows: withNodes},
		{code: quota.GroupsPerServer, of: "server groups of NLBs that a node is in " + everywhere, grows: withServices},
	}
	for i := range lines {
		lines[i].used, lines[i].atMost = u.most[lines[i].code], true
	}
	for _, of := range []struct {
		name    string
		product driver.Product
	}{{"CLB", slb.Product}, {"NLB", nlb.Product}} {
		listeners := "listeners of the " + of.name + " "
		lines = append(lines,
			u.listeners(of.product, quotaLine{of: listeners + "that has the most for several Services", grows: withServices},
				func(b *balancerUses) bool {
					return b.shared && (b.fixed || isFull(of.product.BalancerQuota))
				}),
			u.listeners(of.product, quotaLine{of: listeners + "that has the most for one Service"}, func(b *balancerUses) bool { return !b.shared }),
			u.listeners(of.product, quotaLine{of: listeners + opens, copes: true}, func(b *balancerUses) bool {
				return b.shared && !b.fixed && !isFull(of.product.BalancerQuota)
			}))
	}
	for _, line := range []quotaLine{
		{code: quota.CLBsPerInstance, of: "CLBs that a node is behind " + chosen},
		{code: quota.GroupsPerServer, of: "server groups of NLBs that a node is in " + chosen},
	} {
		if times := u.chosen[line.code]; times > 0 {
			line.atMost, line.copes = true, true
			line.used = max(u.most[line.code], min(u.most[line.code]+int(math.Ceil(times)), book.Limit(line.code).Value))
			lines = append(lines, line)
		}
	}
	return lines
}

// listeners returns a line about the load balancer that has the most ports, of some of those of a product.
func (u *serviceUses) listeners(product driver.Product, line quotaLine, of func(*balancerUses) bool) quotaLine {
	line.code = product.ListenerQuota
	for _, on := range u.balancers {
		if on.product.Name == product.Name && of(on) {
			line.used, line.proven = max(line.used, on.ports), max(line.proven, on.listeners)
		}
	}
	return line
}

// nobodyChooses is the subset of a Service whose nodes nobody chooses.
const nobodyChooses = -1

// add counts a Service. subset is how many nodes the manager chooses for it, or [nobodyChooses].
func (u *serviceUses) add(svc *corev1.Service, product driver.Product, nodes, subset int) {
	id, ports := cmp.Or(svc.Labels[driver.LabelLoadBalancerID], string(svc.UID)), len(svc.Spec.Ports)
	if u.balancers[id] == nil {
		u.balancers[id] = &balancerUses{product: product}
	}
	on := u.balancers[id]
	_, grouped := annotation.Lookup(svc.Annotations, annotation.Group)
	on.services++
	on.ports, on.fixed, on.shared = on.ports+ports, on.fixed || !annotation.GroupOverflows(svc), on.shared || grouped || on.services > 1
	code, needs := needsOfAccount(svc, product)
	u.account[code] += needs
	if synced := meta.FindStatusCondition(svc.Status.Conditions, service.ConditionSynced); synced != nil &&
		synced.Reason == problem.ReasonEnsured {
		on.listeners, u.made[code] = on.listeners+ports, u.made[code]+needs
	}
	u.addBackends(on, product, ports, nodes, subset)
}

// needsOfAccount returns how much a Service needs of which quota of the account, besides its load balancer.
func needsOfAccount(svc *corev1.Service, product driver.Product) (quota.Code, int) {
	switch {
	case product.AttachedPerGroup:
		return quota.NLBGroups, len(svc.Spec.Ports)
	case hasAccessList(svc):
		return quota.ACLs, 1
	}
	return quota.ACLs, 0
}

// addBackends counts the backends of a Service on its load balancer.
func (u *serviceUses) addBackends(on *balancerUses, product driver.Product, ports, nodes, subset int) {
	switch {
	case subset != nobodyChooses && product.AttachedPerGroup:
		on.nodes += ports * subset
		return
	case subset != nobodyChooses:
		on.nodes = min(on.nodes+subset, nodes)
		return
	case product.AttachedPerGroup:
		u.most[product.AttachmentQuota] += ports
	case !on.counted:
		u.most[product.AttachmentQuota]++
	}
	on.counted, on.servers = true, on.servers+ports*nodes
	u.most[product.BackendQuota] = max(u.most[product.BackendQuota], on.servers)
}

// choose counts how many times an instance is a backend because the manager has chosen it. On a CLB where a Service has all nodes, it is
// one for that Service.
func (u *serviceUses) choose(nodes int) {
	for _, on := range u.balancers {
		if on.product.AttachedPerGroup || !on.counted {
			u.chosen[on.product.AttachmentQuota] += float64(on.nodes) / float64(max(nodes, 1))
		}
	}
}

// hasAccessList reports whether a Service with a CLB has an access control list of its own.
func hasAccessList(svc *corev1.Service) bool {
	_, named := annotation.Lookup(svc.Annotations, annotation.ACLID)
	return len(annotation.SourceRangesOf(svc)) > 0 && !named
}

// subsetOf returns how many nodes the manager chooses for a Service: as many as it asks for, and its load balancer takes; none where the
// backends are pods, and [nobodyChooses] where nobody chooses.
func (e *examination) subsetOf(svc *corev1.Service, product driver.Product, nodes int, book *quota.Book) int {
	if kind, _ := annotation.BackendTypeOf(svc.Annotations); backend.WantsPods(annotation.Params{BackendType: kind},
		e.config.BackendENI || e.env.BackendENI) {
		return 0
	}
	if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		return nobodyChooses
	}
	text, _ := annotation.Lookup(svc.Annotations, annotation.BackendSubset)
	subset, ok := backend.ParseSubset(text)
	if !ok {
		subset = e.config.BackendSubset
	}
	if subset == backend.SubsetOff {
		return nobodyChooses
	}
	most := min(nodes, book.Limit(product.BackendQuota).Value/max(len(svc.Spec.Ports), 1))
	if subset > 0 {
		most = min(most, int(subset))
	}
	return most
}

// classes says which product a Service asks for.
func (e *examination) classes() config.Config {
	return config.Config{TypeAnnotation: e.config.TypeAnnotation, DefaultNLB: e.config.DefaultNLB}
}

// productOf returns the product of the load balancer of a Service, false for one that is not the manager's.
func (e *examination) productOf(svc *corev1.Service) (product driver.Product, ok bool) {
	switch {
	case svc.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return driver.Product{}, false
	case nlb.Product.AskedBy(e.classes(), svc):
		return nlb.Product, !e.settings.WithoutNLB
	}
	return slb.Product, !e.settings.WithoutCLB && slb.Product.AskedBy(e.classes(), svc)
}
