package nlb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Class is the load balancer class of Services with an NLB, Finalizer what keeps them until it is gone. Both are those of the official
// CCM.
const (
	Class     = "alibabacloud.com/nlb"
	Finalizer = "service.k8s.alibaba/nlb"
)

// API is what the engine takes of the cloud client.
type API interface {
	observe.Reader
	deploy.Writer
	NLBJobs(ctx context.Context, jobs []alicloud.Job) (map[alicloud.Job]alicloud.JobStatus, error)
	NLBJob(ctx context.Context, job alicloud.Job) (alicloud.JobStatus, error)
	DescribeVSwitches(ctx context.Context, vpcID string) ([]alicloud.VSwitch, error)
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
}

// engine reads and writes NLBs.
type engine struct {
	api      API
	config   config.Config
	services corelisters.ServiceLister
	memory   deploy.Memory
	awaits   jobWaits
	missing  *presence.Absences
	shared   *groups.Groups[alicloud.NLB]
	preloads driver.Preloads[preload] // by the value of the owner tag
	readings driver.Preloads[preload] // by id, for drift detection
	// allGroups are the server groups of the cluster by the value of the owner tag, for drift detection.
	allGroups driver.Listing[map[string][]alicloud.NLBGroup]
}

var _ driver.Engine = (*engine)(nil)

// Product is NLB. The annotation loadbalancer-type has the value that the official CCM reads.
var Product = driver.Product{
	Name: "NLB", Class: Class, Type: "nlb", Finalizer: Finalizer, MetricType: "NLBType", AttachmentQuota: quota.GroupsPerServer,
	AttachedPerGroup: true, Jobs: true,
	BalancerQuota: quota.NLBs, BackendQuota: quota.ServersPerNLB, ListenerQuota: quota.ListenersPerNLB, QuotaProduct: alicloud.QuotasOfNLB,
	// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/product-overview/alb-and-nlb-domain-name-upgrade.
	AddressNote: "use its name as the target of a CNAME record of your own domain; clients should not use it directly",
}

// NewEngine returns the engine for NLBs. Services are those of the cluster.
func NewEngine(api API, config config.Config, services corelisters.ServiceLister) driver.Engine {
	return newEngine(api, config, services)
}

func newEngine(api API, config config.Config, services corelisters.ServiceLister) *engine {
	e := &engine{
		api: api, config: config, services: services, awaits: jobWaits{api: api},
		missing: presence.NewAbsences(Product.Name, api.GetNLB, api, config.VPCID),
	}
	e.shared = &groups.Groups[alicloud.NLB]{Cloud: groupCloud{e}, Product: Product, Config: config, Services: services, Missing: e.missing}
	return e
}

// Product implements driver.Engine.
func (e *engine) Product() driver.Product {
	return Product
}

// Params implements driver.Engine.
func (e *engine) Params(svc *corev1.Service) (annotation.Params, []problem.Problem) {
	return annotation.OfNLB(svc)
}

// Wakes implements driver.Waker: a pass that waits for a job ends, and the Service has another one when the job has ended.
func (e *engine) Wakes(wake func(types.NamespacedName)) {
	e.awaits.wake, e.shared.Wake, e.memory.Creations.Wake = wake, wake, wake
}

// Start implements driver.Engine.
func (e *engine) Start() driver.Balancer { return nlb{engine: e} }

// Released implements driver.Engine.
func (e *engine) Released(svc types.UID) {
	e.memory.Creations.Leave(svc)
	e.shared.Removed(svc)
}

// Forget implements driver.Engine.
func (e *engine) Forget(svc types.UID) {
	e.missing.Forget(svc)
	e.memory.Forget(svc)
	e.memory.Creations.Leave(svc)
	e.shared.Forget(svc)
}

// Repeat implements driver.Engine.
func (e *engine) Repeat(
	ctx context.Context, svc *corev1.Service, creation driver.Creation, since presence.Missing,
) (id string, missing presence.Missing, err error) {
	return e.shared.RepeatCreation(ctx, svc, creation, since, e.api.CreateNLB, e.discardNLB)
}

// discardNLB deletes an NLB that was created although the Service has one: reads did not show that one for a time. One on which somebody
// else has a listener by now stays.
func (e *engine) discardNLB(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) error {
	listeners, err := observe.Listeners(ctx, e.api, lb.ID)
	if err != nil || len(othersListeners(svc, listeners)) > 0 {
		return err
	}
	surplus := &model.Model{LoadBalancer: *lb}
	applier := &deploy.Applier{API: e.api, Model: surplus, Busy: func(string) bool { return false }, Held: func(deploy.Work) error {
		return nil
	}, Memory: &e.memory}
	if err := applier.Run(ctx, diff.Deletion(surplus)); err != nil {
		return fmt.Errorf("delete NLB %s, which nobody needs: %w", lb.ID, err)
	}
	return nil
}

// Refuse implements driver.Engine.
func (e *engine) Refuse(params annotation.Params) error {
	if err := e.config.RefusesPublic(params, "load balancer"); err != nil || params.Has(annotation.LoadBalancerID) {
		return err
	}
	if err := mark.CheckNLBCluster(e.config.ClusterID); err != nil {
		return &problem.ConfigError{Field: "clusterID", Reason: err.Error()}
	}
	return nil
}

// Intent implements driver.Engine.
func (e *engine) Intent(svc *corev1.Service, params annotation.Params) driver.Record {
	id := params.Get(annotation.LoadBalancerID)
	return e.shared.IntendedRecord(svc, params, recordOf(id, svc, params, id != ""))
}

// nlb is what is known of the NLB of one Service.
type nlb struct {
	*engine
	observed
	// desired is what the last plan led to, nil before there was one, and ports are those of the Service that it was made for.
	desired *model.Model
	ports   []corev1.ServicePort
	// former is the id of an NLB that the Service has left, or the mark of a group, if that is what this is about; empty otherwise.
	former string
	// taken says that the Service does not get all its ports here, because others on the NLB have some.
	taken bool
	// unread are the parts that could not be read in this pass, failures what jobs that ended in this pass failed with.
	unread   map[model.Part]error
	failures []error
	// alsoOwned are the ids of further NLBs with the owner tag of the Service, as the last search before a removal has found them.
	alsoOwned []string
	// accessUnread is since when the security group of the source ranges cannot be read after all else of the Service was removed, and
	// groupsUnread the same of its server groups.
	accessUnread, groupsUnread driver.Unread
}

var _ driver.Balancer = nlb{}

// ID implements driver.Balancer.
func (n nlb) ID() string { return n.nlbID() }

// Address implements driver.Balancer.
func (n nlb) Address() string { return n.lb.Value.DNSName }

// Reused implements driver.Balancer.
func (n nlb) Reused() bool { return n.Presence.Reused() }

// SharedID implements driver.Balancer.
func (n nlb) SharedID(svc *corev1.Service, params annotation.Params) string {
	return n.shared.LockFor(svc, params, n.current())
}

// Trusted implements driver.Balancer.
func (n nlb) Trusted() bool { return n.isTrusted() }

// Invalidate implements driver.Balancer.
func (n nlb) Invalidate(reason string) driver.Balancer { return n.withKnown(n.invalidateAll(reason)) }

// InvalidateShared implements driver.Balancer. Several Services may have backend servers in one server group.
func (n nlb) InvalidateShared(ids []string, reason string) (driver.Balancer, bool) {
	for _, group := range n.groups.Value {
		if slices.Contains(ids, group.ID) {
			n.groups.Invalidate(reason)
			return n, true
		}
	}
	return n, false
}

// Recorded implements driver.Balancer.
func (n nlb) Recorded(applied driver.Record) driver.Record {
	applied.LoadBalancerID, applied.Left = n.ID(), n.leftTags
	return n.Known.RecordPlaces(applied)
}

// withKnown returns the NLB as it is known now.
func (n nlb) withKnown(known observed) nlb {
	n.observed = known
	return n
}

// Status implements driver.Balancer. The address is a name; it is shown once a listener runs.
func (n nlb) Status(_ context.Context, params annotation.Params) driver.Shown {
	return n.Stays.Wakes(n.statusFor(params))
}

func (n nlb) statusFor(params annotation.Params) driver.Shown {
	shown := driver.Shown{Balancer: n}
	if access := n.access.Value; access != nil {
		shown.SecurityGroup = &access.ID
	} else if n.access.Known() || n.Presence.Present() && n.unread[model.PartAccess] == nil {
		shown.SecurityGroup = new("")
	}
	if !n.Presence.Present() || n.lb.Value.DNSName == "" && !params.Has(annotation.Hostname) || params.Refuses(annotation.ScopeStatus) {
		return shown
	}
	if n.managesListeners(params) {
		shown.Ports = n.portStatuses()
		if !n.servesListener() {
			shown.Elsewhere = len(n.jobs) == 0 && len(n.Leaving) > 0 // while a job runs, the rest may serve soon
			return shown
		}
	}
	n.Showing = n.ID()
	shown.Balancer, shown.Status, shown.KeepsLeft, shown.Serves = n, statusOf(&n.lb.Value, params), n.keepsLeft(), n.servesAll()
	return shown
}

// servesAll reports whether all listeners of the Service run here, and the server groups that are to have servers have one that takes
// traffic.
func (n nlb) servesAll() bool {
	if n.desired == nil || n.taken || n.countRunning() < len(n.desired.Listeners) {
		return false
	}
	actual := n.wholeModel()
	return !slices.ContainsFunc(n.desired.Groups, func(want model.Group) bool {
		have := actual.Matching(&want)
		return have == nil || (want.Doubt || want.Serves()) && !have.Serves()
	})
}

// managesListeners reports whether the Service manages the listeners of its NLB. On an existing one on which it only stays, the last plan
// says that.
func (n nlb) managesListeners(params annotation.Params) bool {
	return !n.Reused() || params.OverridesListeners() || n.Stays != nil && n.desired != nil && n.desired.Override
}

// servesListener reports whether the Service is to show the NLB: a listener runs. One that moves shows another NLB until all of them run,
// and from then on this one: nobody needs what it has elsewhere.
func (n nlb) servesListener() bool {
	running := n.countRunning()
	switch {
	case n.desired == nil:
	case groups.ShowsFormer(n.Showing, n.Leaving, n.ID()):
		return !n.taken && running > 0 && running >= len(n.desired.Listeners)
	case len(n.Leaving) > 0 && n.Showing == n.ID():
		return true
	}
	return running > 0
}

// countRunning counts the listeners of the Service that run.
func (n nlb) countRunning() int {
	running := 0
	for i := range n.listeners.Value {
		l := &n.listeners.Value[i]
		wanted := n.desired == nil && n.Group.IsZero()
		if want := n.desired.Listener(l.Key()); want != nil {
			wanted = ofOneService(l, want) // and not one that another Service has on the port
		}
		if wanted && !n.isBusy(model.TargetListener(l.Key())) && (l.Status == alicloud.NLBListenerRunning || l.Status == configuring) {
			running++
		}
	}
	return running
}

// configuring is the status of a listener that runs while it is changed.
const configuring = alicloud.NLBConfiguring

func statusOf(lb *alicloud.NLB, params annotation.Params) *corev1.LoadBalancerStatus {
	name := params.Or(annotation.Hostname, lb.DNSName)
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{Hostname: strings.TrimSpace(name)}}}
}
