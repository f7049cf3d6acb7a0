package slb

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// Class is the load balancer class of Services with a CLB. A Service without a class has one, too.
const Class = "alibabacloud.com/clb"

// Finalizer keeps a Service until its CLB is gone. It is that of the official CCM, so that a user can go back to that at any time.
const Finalizer = "service.k8s.alibaba/resources"

// engine reads and writes CLBs.
type engine struct {
	api          API
	config       config.Config
	missing      *presence.Absences
	services     corelisters.ServiceLister
	preloads     driver.Preloads[preload] // by the value of the owner tag
	readings     driver.Preloads[preload] // by id, for drift detection
	certificates certificates
	shared       *groups.Groups[alicloud.LoadBalancer]
	// answers is what calls of all Services have shown.
	answers deploy.Memory
	// full are the CLBs of groups that the cloud refused more backend servers, by id.
	full refusal.Refusals[string]
}

var _ driver.Engine = (*engine)(nil)

// Product is CLB. Services without a class have one.
var Product = driver.Product{
	Name: "CLB", Class: Class, Classless: true, Finalizer: Finalizer, MetricType: "CLBType", AttachmentQuota: quota.CLBsPerInstance,
	BalancerQuota: quota.CLBs, BackendQuota: quota.BackendsPerCLB, ListenerQuota: quota.ListenersPerCLB, QuotaProduct: alicloud.QuotasOfCLB,
}

// NewEngine returns the engine for CLBs. Services are those of the cluster: several may share a CLB.
func NewEngine(api API, config config.Config, services corelisters.ServiceLister) driver.Engine {
	registerMetrics()
	return newEngine(api, config, services)
}

func newEngine(api API, config config.Config, services corelisters.ServiceLister) *engine {
	e := &engine{
		api: api, config: config, services: services, missing: presence.NewAbsences(Product.Name, api.DescribeLoadBalancer, api, config.VPCID),
	}
	e.shared = &groups.Groups[alicloud.LoadBalancer]{Cloud: groupCloud{e}, Product: Product, Config: config, Services: services,
		Missing: e.missing}
	return e
}

// Product implements driver.Engine.
func (e *engine) Product() driver.Product {
	return Product
}

// Params implements driver.Engine.
func (e *engine) Params(svc *corev1.Service) (annotation.Params, []problem.Problem) {
	return annotation.Of(svc)
}

// Start implements driver.Engine.
func (e *engine) Start() driver.Balancer { return clb{engine: e} }

// Released implements driver.Engine.
func (e *engine) Released(svc types.UID) {
	e.answers.Creations.Leave(svc)
	e.shared.Removed(svc)
}

// Forget implements driver.Engine.
func (e *engine) Forget(svc types.UID) {
	e.missing.Forget(svc)
	e.answers.Creations.Leave(svc)
	e.shared.Forget(svc)
}

var _ driver.Waker = (*engine)(nil)

// Wakes implements driver.Waker.
func (e *engine) Wakes(wake func(types.NamespacedName)) {
	e.shared.Wake, e.answers.Creations.Wake = wake, wake
}

// Repeat implements driver.Engine.
func (e *engine) Repeat(
	ctx context.Context, svc *corev1.Service, creation driver.Creation, since presence.Missing,
) (id string, missing presence.Missing, err error) {
	create := func(ctx context.Context, lb alicloud.LoadBalancer, token string) (string, error) {
		made, err := e.api.CreateLoadBalancer(ctx, lb, token)
		return made.ID, err
	}
	return e.shared.RepeatCreation(ctx, svc, creation, since, create, e.discardCLB)
}

// discardCLB deletes a CLB that was created although the Service has one: reads did not show that one for a time. One on which somebody
// else has a listener by now stays.
func (e *engine) discardCLB(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) error {
	listeners, err := e.api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	surplus := observe.New(*lb, listeners[lb.ID])
	if len(othersListeners(svc, surplus.Listeners)) > 0 {
		return nil
	}
	if err := deploy.New(e.api, &e.answers, surplus).Run(ctx, diff.Deletion(surplus)); err != nil {
		return fmt.Errorf("delete CLB %s, which nobody needs: %w", lb.ID, err)
	}
	return nil
}

// Refuse implements driver.Engine.
func (e *engine) Refuse(params annotation.Params) error {
	return e.config.RefusesPublic(params, "CLB")
}

// Intent implements driver.Engine.
func (e *engine) Intent(svc *corev1.Service, params annotation.Params) driver.Record {
	id := params.Get(annotation.LoadBalancerID)
	return e.shared.IntendedRecord(svc, params, recordOf(id, params, id != "", len(annotation.SourceRangesOf(svc)) > 0))
}

// clb is what is known of the CLB of one Service.
type clb struct {
	*engine
	observed
	// charge is the internet charge type that was last asked for.
	charge deploy.PendingCharge
	// desired is what the last plan led to, nil before there was one.
	desired *model.Model
	// marking is the cluster id of the marks as the last plan took it.
	marking marking
	// before is what was known of the CLB before it was read only because of its age, nil otherwise.
	before *model.Model
	// ports are those of the Service when the last plan was made, and refused the targets of steps that the cloud refused since the
	// Service was last changed.
	ports   []corev1.ServicePort
	refused map[string]bool
	// former is the id of a CLB that the Service has left, or the mark of a group, if that is what this is about; empty otherwise.
	former string
	// taken says that the Service does not get all its ports here, because others on the CLB have some.
	taken bool
	// listUnread is since when the access control list cannot be read after all else of the Service was removed.
	listUnread driver.Unread
	// unread are the parts that could not be read in this pass.
	unread map[model.Part]error
	// alsoOwned are the ids of further CLBs with the owner tag of the Service, as the last search before a removal has found them.
	alsoOwned []string
}

var _ driver.Balancer = clb{}

// ID implements driver.Balancer.
func (c clb) ID() string {
	if !c.Presence.Present() {
		return ""
	}
	return c.loadBalancer.Value.ID
}

// Address implements driver.Balancer.
func (c clb) Address() string { return c.loadBalancer.Value.Address }

// Reused implements driver.Balancer.
func (c clb) Reused() bool { return c.Presence.Reused() }

// SharedID implements driver.Balancer.
func (c clb) SharedID(svc *corev1.Service, params annotation.Params) string {
	return c.shared.LockFor(svc, params, c.current())
}

// Trusted implements driver.Balancer.
func (c clb) Trusted() bool { return c.isTrusted() }

// Invalidate implements driver.Balancer.
func (c clb) Invalidate(reason string) driver.Balancer { return c.withKnown(c.invalidateAll(reason)) }

// InvalidateShared implements driver.Balancer. Several Services may have backend servers in one vServer group, where each can be only
// once.
func (c clb) InvalidateShared(ids []string, reason string) (driver.Balancer, bool) {
	if !c.Reused() || c.desired == nil {
		return c, false
	}
	for _, group := range c.groups.Value {
		if slices.Contains(ids, group.ID) && c.desired.Group(group.Name) != nil {
			c.groups.Invalidate(reason)
			return c, true
		}
	}
	return c, false
}

// Recorded implements driver.Balancer.
func (c clb) Recorded(applied driver.Record) driver.Record {
	return c.Known.RecordPlaces(asRecorded(applied, c.wholeModel()))
}

// withKnown returns the CLB as it is known now.
func (c clb) withKnown(known observed) clb {
	c.observed = known
	return c
}

// API is the part of the cloud that this package calls; *alicloud.Client has it.
type API interface {
	observe.Reader
	deploy.Writer
	BackendsPerCall() int
}

var _ API = (*alicloud.Client)(nil)
