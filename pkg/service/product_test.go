package service

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// product is an engine whose cloud is a map: load balancers with the ports that each Service has on them. It shows that the frame knows
// no product, and does what no cloud does on demand: it panics, waits and has jobs that take long.
type product struct {
	name string
	// step, if not nil, is called at each stage of a pass, before its effect.
	step func(ctx context.Context, stage string, svc *corev1.Service) error
	// orphans, if not nil, answers what no Service owns.
	orphans func(driver.OrphanQuery) (driver.Census, error)

	mu     sync.Mutex // guards the rest
	next   int
	cloud  map[string]map[string][]int32 // by load balancer and Service
	calls  []string
	jobs   map[string]time.Duration // how long the cloud is at work on what a Service asked for last
	forgot []types.UID
}

var _ driver.Engine = (*product)(nil)

// Repeat implements Engine.
func (p *product) Repeat(context.Context, *corev1.Service, driver.Creation, presence.Missing) (string, presence.Missing, error) {
	return "", presence.Missing{}, nil
}

func newProduct(name string) *product {
	return &product{name: name, cloud: map[string]map[string][]int32{}, jobs: map[string]time.Duration{}}
}

func (p *product) finalizer() string { return "example.com/keeps-" + p.name }
func (p *product) class() string     { return "example.com/" + p.name }

// listeners is the quota of ports of a load balancer.
func (p *product) listeners() quota.Code { return quota.Code(p.name + "_quota_listeners_num") }

// stage notes a stage of a pass over a Service.
func (p *product) stage(ctx context.Context, stage string, svc *corev1.Service) error {
	p.mu.Lock()
	step := p.step
	p.mu.Unlock()
	if step == nil {
		return nil
	}
	return step(ctx, stage, svc)
}

// atStage has f called at each stage of a pass, before its effect.
func (p *product) atStage(f func(ctx context.Context, stage string, svc *corev1.Service) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = f
}

// work has the cloud be at work on what a Service asked for, for so long.
func (p *product) work(name string, job time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs[name] = job
}

// called notes a call of the cloud. The caller holds mu.
func (p *product) called(format string, args ...any) {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

// since returns the calls since the last time.
func (p *product) since() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

func writesOf(calls []string) []string {
	return slices.DeleteFunc(calls, func(call string) bool { return strings.HasPrefix(call, "read ") })
}

// of returns the load balancer of a Service and its ports there.
func (p *product) of(name string) (id string, ports []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, services := range p.cloud {
		if ports, ok := services[name]; ok {
			return id, ports
		}
	}
	return "", nil
}

// set has a Service have ports on a load balancer, as somebody might do by hand.
func (p *product) set(id, name string, ports ...int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cloud[id] == nil {
		p.cloud[id] = map[string][]int32{}
	}
	p.cloud[id][name] = ports
}

func (p *product) Params(svc *corev1.Service) (annotation.Params, []problem.Problem) {
	return annotation.Of(svc)
}

func (p *product) Product() driver.Product {
	made := driver.Product{Name: strings.ToUpper(p.name), Class: p.class(), Finalizer: p.finalizer(), MetricType: p.name, QuotaProduct: p.name}
	if made.Classless = p.name == "clb"; !made.Classless {
		made.Type = p.name
	}
	return made
}
func (p *product) Start() driver.Balancer                                  { return known{product: p} }
func (p *product) Refuse(annotation.Params) error                          { return nil }
func (p *product) Intent(*corev1.Service, annotation.Params) driver.Record { return driver.Record{} }

func (p *product) Preload(context.Context, []*corev1.Service) error {
	return p.stage(context.Background(), "Preload", nil)
}

func (p *product) Orphans(_ context.Context, query driver.OrphanQuery) (driver.Census, error) {
	if p.orphans == nil {
		return driver.Census{}, nil
	}
	return p.orphans(query)
}

func (*product) Released(types.UID) {}

func (p *product) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgot = append(p.forgot, uid)
}

// known is what a product knows of the load balancer of a Service.
type known struct {
	product *product
	id      string
	reused  bool
	ports   []int32
	trusted bool
}

var _ driver.Balancer = known{}

func (k known) ID() string      { return k.id }
func (k known) Address() string { return "10.0.0." + strings.TrimPrefix(k.id, k.product.name+"-") }
func (k known) Reused() bool    { return k.reused }
func (k known) Trusted() bool   { return k.trusted }

func (k known) SharedID(_ *corev1.Service, params annotation.Params) string {
	if k.reused {
		return k.id
	}
	return params.Get(annotation.LoadBalancerID)
}

func (k known) Invalidate(string) driver.Balancer {
	k.trusted = false
	return k
}

func (k known) InvalidateShared(ids []string, reason string) (driver.Balancer, bool) {
	if !slices.Contains(ids, k.id) {
		return k, false
	}
	return k.Invalidate(reason), true
}

func (k known) Uses() []quota.Use {
	return []quota.Use{{Code: k.product.listeners(), Used: len(k.ports)}}
}

func (k known) Recorded(applied driver.Record) driver.Record {
	applied.LoadBalancerID = k.id
	return applied
}

// read reads the load balancer of a Service.
func (k known) read(ctx context.Context, svc *corev1.Service) (known, error) {
	if err := k.product.stage(ctx, "Refresh", svc); err != nil {
		return k, err
	}
	k.id, k.ports = k.product.of(svc.Name)
	params, _ := annotation.Parse(svc.Annotations)
	if asked := params.Get(annotation.LoadBalancerID); asked != "" && k.id == "" {
		k.id = asked
	}
	k.reused = strings.HasPrefix(k.id, "lb-shared")
	k.trusted = true
	k.product.mu.Lock()
	defer k.product.mu.Unlock()
	k.product.called("read %s", svc.Name)
	return k, nil
}

func (k known) Refresh(ctx context.Context, of driver.Request) (driver.Refreshed, error) {
	found := driver.Refreshed{Balancer: k, Applied: &driver.Record{}}
	if k.trusted && !of.DriftDue {
		return found, nil
	}
	read, err := k.read(ctx, of.Service)
	found.Balancer, found.Whole, found.Some = read, err == nil, err == nil
	return found, err
}

func (k known) Backends(driver.Inputs) backend.Input        { return backend.Input{} }
func (k known) Room(driver.Inputs) backend.Room             { return backend.Room{} }
func (k known) InvalidateBackends(string) driver.Balancer   { return k }
func (k known) Nodes(driver.Inputs) iter.Seq2[string, bool] { return nil }
func (k known) NodesReadAt() time.Time                      { return time.Time{} }

func (k known) Plan(ctx context.Context, in driver.Inputs) (driver.Decision, error) {
	var wanted []int32
	for _, port := range in.Service.Spec.Ports {
		wanted = append(wanted, port.Port)
	}
	return driver.Decision{Plan: change{known: k, ports: wanted}, Applied: &driver.Record{}}, k.product.stage(ctx, "Plan", in.Service)
}

func (k known) Status(context.Context, annotation.Params) driver.Shown {
	if k.id == "" || len(k.ports) == 0 {
		return driver.Shown{Balancer: k}
	}
	return driver.Shown{Balancer: k, Status: &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: k.Address()}}}}
}

func (k known) RefreshForRemoval(ctx context.Context, svc *corev1.Service, _ *driver.Record) (driver.Balancer, error) {
	return k.read(ctx, svc)
}

func (k known) PlanRemoval(*corev1.Service, *driver.Record) (driver.Removal, error) {
	return driver.Removal{Plan: change{known: k, removal: true}, ID: k.id, Reused: k.reused}, nil
}

func (k known) PlanLeftovers(context.Context, *corev1.Service) (driver.Balancer, driver.Plan, error) {
	return k, nothing{k}, nil
}

func (k known) Removed(driver.Removal) (driver.Balancer, bool) {
	return known{product: k.product}, false
}

// change is the plan that gives a Service its ports, or takes everything from it.
type change struct {
	known
	ports   []int32
	removal bool
}

func (c change) Steps() []driver.Step {
	if slices.Equal(c.ports, c.known.ports) {
		return nil
	}
	return []driver.Step{{Op: "change", Text: "change"}}
}

func (c change) Deploy(ctx context.Context, svc *corev1.Service, _ driver.Create) driver.Deployment {
	p, done := c.product, driver.Deployment{Balancer: c.known, Registered: func(string) bool { return false }}
	p.mu.Lock()
	done.Wait = p.jobs[svc.Name]
	p.mu.Unlock()
	if len(c.Steps()) == 0 {
		return done
	}
	if done.Err = p.stage(ctx, "Deploy", svc); done.Err != nil {
		return done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.id == "" {
		p.next++
		c.id = fmt.Sprintf("%s-%d", p.name, p.next)
	}
	if p.cloud[c.id] == nil {
		p.cloud[c.id] = map[string][]int32{}
	}
	if c.removal {
		p.called("remove %s", svc.Name)
		delete(p.cloud[c.id], svc.Name)
	} else {
		p.called("write %s", svc.Name)
		p.cloud[c.id][svc.Name] = c.ports
		c.known.ports = c.ports
	}
	done.Balancer, done.Writes, done.Progress = c.known, 1, true
	if c.removal {
		done.Shared = []string{c.id}
	}
	return done
}
