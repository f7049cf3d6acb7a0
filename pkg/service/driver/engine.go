package driver

import (
	"context"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Engine is one load balancer product. The frame decides when something happens to a Service; the engine knows what that means for
// the product.
type Engine interface {
	Product() Product
	// Params reads the annotations of a Service, and the fields of its spec that mean the same as one.
	Params(svc *corev1.Service) (annotation.Params, []problem.Problem)
	// Start returns the load balancer of a Service of which nothing is known yet.
	Start() Balancer
	// Refuse returns why a Service with these annotations gets no load balancer, nil for nothing.
	Refuse(params annotation.Params) error
	// Intent returns what the first pass over a Service is about to write, see [Record].
	Intent(svc *corev1.Service, params annotation.Params) Record
	// Repeat makes a creation again, and returns the load balancer that the cloud answers with, empty where that is gone again: missing
	// says since when reads do not show it. Where the one of its own that the Service shows is there all the same, it returns that, and
	// deletes the other one.
	Repeat(ctx context.Context, svc *corev1.Service, creation Creation, since presence.Missing) (id string, missing presence.Missing, err error)
	// Released notes that nothing of a Service is left in the cloud. The cache may show the Service as it was for a while.
	Released(service types.UID)
	// Forget drops what is known of a Service that is gone.
	Forget(service types.UID)
	// Preload reads the load balancers of many Services together; what it misses, [Balancer.Refresh] reads.
	Preload(ctx context.Context, services []*corev1.Service) error
	// Orphans returns what the cluster's marks are on in the cloud and none of the Services owns, as far as it could be read: an error, or
	// several that are joined, says what could not. It reads only.
	Orphans(ctx context.Context, query OrphanQuery) (Census, error)
}

// Waker is an [Engine] that waits for jobs of the cloud without a pass.
type Waker interface {
	// Wakes sets what has a Service reconciled at once. Without it, passes follow one another in short intervals.
	Wakes(wake func(types.NamespacedName))
}

// Product says how a product is called.
type Product struct {
	// Name is for texts, for example "CLB".
	Name string
	// Class is the load balancer class of its Services.
	Class string
	// Classless says that Services without a class have one, too, unless the annotation [AnnotationClass] is on them, or the cloud-config
	// names another product. One that has a load balancer of another product keeps that: its address would change.
	Classless bool
	// Type is the value of the annotation [annotation.Type] that asks for it on a Service without a class; empty for none.
	Type string
	// Finalizer keeps a Service until its load balancer of this product is gone. It also says, after a restart, too, that this product
	// has a load balancer for the Service, whatever the Service's class says by now. No two products have the same.
	Finalizer string
	// MetricType is the value of the label type in the official CCM's metrics.
	MetricType string
	// BalancerQuota is how many load balancers of the product the account may have, BackendQuota how many backends one of them, ListenerQuota
	// how many listeners.
	BalancerQuota, BackendQuota, ListenerQuota quota.Code
	// QuotaProduct is how the Quota Center calls the product.
	QuotaProduct string
	// AttachmentQuota is how many times an instance may be a backend. It counts load balancers, or groups with AttachedPerGroup.
	AttachmentQuota  quota.Code
	AttachedPerGroup bool
	// Jobs says that calls begin jobs of the cloud: a backend that one removes still counts for the quota until the job has ended, which wakes
	// the Service.
	Jobs bool
	// AddressNote is what users have to know of an address of the product; it stands in the event about the first one. Empty for nothing.
	AddressNote string
}

// AttachmentsOf is how many times an instance counts that is a backend of the Service.
func (p Product) AttachmentsOf(svc *corev1.Service) int {
	if p.AttachedPerGroup {
		return len(svc.Spec.Ports)
	}
	return 1
}

// Balancer is what an engine knows of the load balancer of one Service. It is a value: no method changes it, and each returns what
// it found.
type Balancer interface {
	// ID is that of the load balancer, empty where none is known.
	ID() string
	// Address is where it answers, empty while none is known.
	Address() string
	// Reused says that the load balancer is an existing one, which other Services may use, too.
	Reused() bool
	// SharedID names what other Services may use, too, and passes over them take turns on: a load balancer by its id, or a group of Services.
	// It is empty for a load balancer of the Service's own.
	SharedID(svc *corev1.Service, params annotation.Params) string
	// Trusted reports whether nothing of it needs reading.
	Trusted() bool
	// Invalidate has it read again before anything relies on it.
	Invalidate(reason string) Balancer
	// InvalidateBackends has the backend servers read again.
	InvalidateBackends(reason string) Balancer
	// InvalidateShared has those things read again that have one of the ids, if the Service relies on any; else it says false. See
	// [Deployment.Shared].
	InvalidateShared(ids []string, reason string) (after Balancer, relies bool)

	// Recorded returns the Record as that of the load balancer.
	Recorded(applied Record) Record

	// Refresh re-reads those parts that are in doubt or due for drift detection.
	Refresh(ctx context.Context, of Request) (Refreshed, error)
	// Backends says what the backends of the Service are made from.
	Backends(in Inputs) backend.Input
	// Room says how many backends the load balancer has room for, and which ones it has.
	Room(in Inputs) backend.Room
	// Nodes goes over the backend servers of the Service that are nodes: the ID of the instance, or the address of the node, and whether it
	// gets new connections. Pods are no nodes. It is nil where nothing is known.
	Nodes(in Inputs) iter.Seq2[string, bool]
	// NodesReadAt is when they were read. What was written later, and answered, is among them. It is zero while the cloud may hold something
	// else, or another load balancer something of the Service, which it leaves.
	NodesReadAt() time.Time
	// Uses says how much it uses of quotas: of its own, and of those that all load balancers share.
	Uses() []quota.Use
	// Plan compares what is wanted with what is there.
	Plan(ctx context.Context, in Inputs) (Decision, error)
	// Status returns what the Service is to show, after [Plan.Deploy].
	Status(ctx context.Context, params annotation.Params) Shown

	// RefreshForRemoval reads what is to be removed, also where it is known: the author of the Service may have taken it over. What the
	// annotations ask for counts less than what is there: they may be invalid, and deletion must work all the same.
	RefreshForRemoval(ctx context.Context, svc *corev1.Service, applied *Record) (Balancer, error)
	// PlanRemoval removes what the Service has on the load balancer.
	PlanRemoval(svc *corev1.Service, applied *Record) (Removal, error)
	// PlanLeftovers removes what outlives the load balancer, once that is gone.
	PlanLeftovers(ctx context.Context, svc *corev1.Service) (Balancer, Plan, error)
	// Removed returns what is known once a removal was carried out, and whether anything may outlive the load balancer.
	Removed(removal Removal) (known Balancer, leftovers bool)
}

// Mover is a [Balancer] of a Service that can move to another load balancer. It leaves what it was on once the other one serves.
type Mover interface {
	Balancer
	// Left returns what the Service has left and may have something on. Of each, [Balancer.RefreshForRemoval] and [Balancer.PlanRemoval] are
	// made.
	Left(svc *corev1.Service) []Balancer
	// Leave returns what is known once something that the Service has left was read or removed. gone says that nothing of the Service is
	// there.
	Leave(former Balancer, svc *corev1.Service, gone bool) Balancer
	// Follows returns those of what it leaves whose backends do not follow the endpoints without this: until the Service shows its new place,
	// only the one that it shows.
	Follows(svc *corev1.Service, when Stage) []Follower
}

// Stage is how far a pass over a Service that moves has come.
type Stage int

const (
	// Stuck is a pass with a plan for the new place, while the Service shows the old one.
	Stuck Stage = iota
	// Unplanned is a pass without one, because the new place cannot be read or is refused.
	Unplanned
	// Moved is a pass over a Service that shows its new place, and leaves the old one in a while.
	Moved
)

// Follower is a load balancer that a Service leaves and still shows: the cloud may refuse what the Service needs at its new place for long,
// and meanwhile nodes and pods come and go. Only the backends that the Service has there are kept in line, so that there is one place where
// it is to be.
type Follower interface {
	Balancer
	// RefreshBackends reads what the Service has there. The id is empty where the load balancer is not there.
	RefreshBackends(ctx context.Context, svc *corev1.Service) (Follower, error)
	// PlanBackends brings the backends in line, and changes nothing else.
	PlanBackends(in Inputs) Plan
}

// Request is what [Balancer.Refresh] needs to know of a Service.
type Request struct {
	Service *corev1.Service
	Params  annotation.Params
	// Adopted says that the Service may have had a load balancer before this program saw it.
	Adopted bool
	// DriftDue says that the load balancer was read so long ago that somebody may have changed it.
	DriftDue bool
	// Unsettled says that calls may have been under way when it was last read, so that all of it is to be read.
	Unsettled bool
	// DueSoon returns what is known of the load balancers that are due for drift detection within a time, the next first. It may be nil.
	DueSoon func(within time.Duration) []Balancer
	// Applied is what this process knows to be applied, nil before the first pass.
	Applied *Record
	// Edited says that somebody has edited what the Service asks for: what the cloud refused before is tried again.
	Edited bool
}

// Together returns the id of a load balancer that is read for drift detection, and up to most ids with those of others that become due
// within a time. idOf returns the id of such a one, empty where it is not to be read together with others.
func (r Request) Together(id string, most int, within time.Duration, idOf func(Balancer) string) []string {
	ids := []string{id}
	if r.DueSoon == nil {
		return ids
	}
	for _, balancer := range r.DueSoon(within) {
		if other := idOf(balancer); len(ids) < most && other != "" && !slices.Contains(ids, other) {
			ids = append(ids, other)
		}
	}
	return ids
}

// Refreshed is what [Balancer.Refresh] found.
type Refreshed struct {
	Balancer Balancer
	// Applied is what was applied to the load balancer, nil where that could not be read.
	Applied *Record
	// Whole says that everything was read, so that the next read for drift counts from now; Some says that a part was.
	Whole, Some bool
	// Together says that it was read with the load balancers of all other Services, see [Engine.Preload].
	Together bool
	// Vanished is the id of a load balancer that the Service should have and that is gone.
	Vanished string
	// Unread is why parts could not be read. Their last values stand, and block only the steps that depend on them.
	Unread error
}

// Inputs are what the wanted state of a Service depends on, whatever the product.
type Inputs struct {
	backend.Facts

	Service *corev1.Service
	// Params are the annotations as they were last accepted, each by itself; Invalid says that some of this pass were not
	// accepted.
	Params  annotation.Params
	Invalid bool
	// Applied is what earlier passes applied.
	Applied Record
	// Reclaimed is the id of a load balancer whose removal was begun before its Service wanted it again.
	Reclaimed string

	Now time.Time
}

// Decision is what a pass wants, and how to get there.
type Decision struct {
	Plan Plan
	// Applied is what is applied once the plan was carried out, nil to leave the Record as it is.
	Applied  *Record
	Problems []problem.Problem
	// Ineffective are annotations that do not act as they read; only the log says so.
	Ineffective []string
}

// Plan is a list of steps.
type Plan interface {
	// Steps are the steps in their order; without any, the plan writes nothing.
	Steps() []Step
	// Deploy carries out the plan as far as possible. What only repairs what somebody changed in the cloud can wait. create makes the call
	// that creates a load balancer.
	Deploy(ctx context.Context, svc *corev1.Service, create Create) Deployment
}

// Step is one step of a plan, as people and programs read it.
type Step struct {
	Op string `json:"op"`
	// Target names what changes, for example "tcp:80".
	Target string `json:"target"`
	// Before and After show the change; one of them is empty where something is created or removed.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Later says what the step waits for, empty for nothing.
	Later string `json:"later,omitempty"`
	// Text is the step in one line.
	Text string `json:"-"`
}

// String returns the step in one line.
func (s Step) String() string { return s.Text }

// Deployment is what came of a plan.
type Deployment struct {
	// Balancer is what is known afterwards.
	Balancer Balancer
	// Writes counts the calls that changed something.
	Writes int
	// Progress says that the cloud accepted one of them.
	Progress bool
	// Refused are the names of annotations that the cloud refused to apply.
	Refused []string
	// Untagged are the keys of tags that were removed from the load balancer.
	Untagged []string
	// Uncertain says that a call may or may not have taken effect, or may do so later.
	Uncertain bool
	// RefusedBackend says that a call failed because of a backend in it.
	RefusedBackend bool
	// Exhausted are instances that the cloud refused because they are backends as many times as they may be.
	Exhausted []string
	// Suspected are instances that the cloud refused because a quota is used up that may be theirs or another one: the code does not say
	// which.
	Suspected []string
	// Interrupted says that the plan was given up for one that knows more.
	Interrupted bool
	// Lost is the id of a load balancer that a call said does not exist. One answer does not prove it: Err is then a
	// [problem.WaitError].
	Lost string
	// Wait is how long a job of the cloud is likely to take that the rest of the plan waits for, 0 for none. The pass is made again
	// after it, and is no success until then.
	Wait time.Duration
	// Shared are the ids of things on a shared load balancer that the plan wrote to and that other Services may rely on, too.
	Shared []string
	// GoesBack says that the cloud refused a load balancer to which the Service was to move: the next pass, at once, goes on where the Service
	// was before.
	GoesBack bool
	// Problems are what stays in the cloud after a removal, for the author of the Service: nobody else hears of it.
	Problems []problem.Problem
	// Registered reports whether the address of a pod gets traffic in every group that is to have it.
	Registered func(address string) bool
	Err        error
}

// RegisteredAlso reports whether the address of a pod gets traffic here, and on the load balancer that the Service leaves and still shows.
// It is nil where nobody knows: then no gate opens or closes.
func (d Deployment) RegisteredAlso(left Deployment) func(address string) bool {
	if d.Registered == nil || left.Registered == nil {
		return nil
	}
	return func(address string) bool { return d.Registered(address) && left.Registered(address) }
}

// ServesAddress reports whether the address of a pod gets traffic on a load balancer that the Service leaves and still shows. Clients use
// that: a pod is not to count as not ready because the cloud refuses something at the new place.
func (d Deployment) ServesAddress(address string) bool {
	return d.Balancer != nil && d.Registered != nil && d.Registered(address)
}

// OutcomeError is the error of the deployment. A job of the cloud that is still under way is one that only means "not now".
func (d Deployment) OutcomeError() error {
	if d.Err == nil && d.Wait > 0 {
		return &problem.WaitError{Reason: "a job of the cloud is still running", For: d.Wait}
	}
	return d.Err
}

// Shown is what a Service shows of its load balancer.
type Shown struct {
	Balancer Balancer
	// Status is nil while the load balancer does not answer, or nobody knows which addresses to show: then the last one stays.
	Status *corev1.LoadBalancerStatus
	// Elsewhere says that Status is nil because not all ports are served here, and the Service goes on to show a load balancer that it leaves.
	Elsewhere bool
	// Serves says that Status shows what serves all ports, whatever else failed: nobody needs what the Service was on before.
	Serves bool
	// KeepsLeft says that nobody can tell whether what Status shows serves the Service, so that it does not leave what it was on before.
	KeepsLeft bool
	// Ports is what every address says about the ports, nil while all are served, or soon may be, or nobody knows.
	Ports []corev1.PortStatus
	// SecurityGroup is the id of the security group for the source ranges, empty for none; nil leaves [LabelSecurityGroupID] as it is.
	SecurityGroup *string
	Problems      []problem.Problem
	// Wake is after what time the status is due again, 0 for none.
	Wake time.Duration
}

// Removal is how to remove what a Service has on its load balancer.
type Removal struct {
	Plan Plan
	// ID is that of the load balancer. Reused and Preserved say that the load balancer itself stays.
	ID                string
	Reused, Preserved bool
	// Kept is why a load balancer stays that may have been created for the Service, empty for no such one.
	Kept string
	// Status is what the Service shows of it.
	Status *corev1.LoadBalancerStatus
}
