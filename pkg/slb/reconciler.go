package slb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
)

// Reconciler makes the cloud match the Services. It is the only writer: one pass at a time per Service, whoever asks for it.
type Reconciler struct {
	opts       Options
	clb        *engine
	writer     serviceWriter
	events     *events.Recorder
	states     states
	services   keyLock // by namespace/name
	balancers  keyLock // by the id of a CLB that several Services may share; taken after the Service's
	interrupts interrupts
	pods       podReader
}

// engine reads and writes CLBs.
type engine struct {
	api          API
	config       config.Config
	services     corelisters.ServiceLister
	preloads     preloads
	certificates certificates
	blocks       vpcBlocks
	// answers is what calls of all Services have shown.
	answers deploy.Memory
}

// NewReconciler returns a reconciler. It asks for the informers that it reads, which may be started later.
func NewReconciler(opts Options) *Reconciler {
	opts = opts.withDefaults()
	opts.Services.Informer()
	opts.Nodes.Informer()
	opts.endpointInformer()
	registerMetrics()
	return &Reconciler{
		opts: opts, writer: serviceWriter{client: opts.Client}, events: events.New(opts.Recorder, 0),
		clb: &engine{api: opts.API, config: opts.Config, services: opts.Services.Lister()},
	}
}

// Reconcile makes one pass over a Service: it creates or repairs its CLB, or tears it down, and shows the result on the
// Service. It returns after what time the next pass is due without any event, 0 for none.
//
// An error that only means "not now" is not returned; the time is then short.
func (r *Reconciler) Reconcile(ctx context.Context, svc *corev1.Service) (time.Duration, error) {
	unlock, err := r.lockService(ctx, svc)
	if err != nil {
		return 0, err
	}
	defer unlock()
	switch {
	case wantsLoadBalancer(r.opts.Config, svc):
		return r.provision(ctx, svc)
	case WantsLoadBalancer(svc) && handsOver(r.opts.Config, svc):
		r.emitProblems(svc, []problem.Problem{handedOver(svc)}, nil)
		return 0, nil
	case hasFinalizer(svc):
		return r.tearDown(ctx, svc)
	default:
		return 0, nil
	}
}

// Forget drops what is known of a Service that is gone.
func (r *Reconciler) Forget(key types.NamespacedName) { r.states.drop(key) }

// lockService keeps other passes from the Service.
func (r *Reconciler) lockService(ctx context.Context, svc *corev1.Service) (unlock func(), err error) {
	if unlock, err = r.services.lock(ctx, mark.ServiceName(svc).String()); err != nil {
		return nil, fmt.Errorf("wait for the Service: %w", err)
	}
	return unlock, nil
}

// lockShared keeps other Services from a CLB that is not this one's alone.
func (r *Reconciler) lockShared(ctx context.Context, params annotation.Params, clb observed) (unlock func(), err error) {
	id := params.Get(annotation.LoadBalancerID)
	if clb.reused() {
		id = clb.lastID()
	}
	if id == "" {
		return func() {}, nil
	}
	if unlock, err = r.balancers.lock(ctx, id); err != nil {
		return nil, fmt.Errorf("wait for CLB %s: %w", id, err)
	}
	return unlock, nil
}

// refuse returns why nothing may be done for a Service.
func (e *engine) refuse(params annotation.Params) error {
	if e.config.DisablePublicSLB && !params.Has(annotation.LoadBalancerID) && params.AddressType() == alicloud.AddressInternet {
		return &problem.ConfigError{Field: "disablePublicSLB", Reason: "public CLBs are switched off in the cloud config; ask for one with the annotation " +
			string(annotation.AddressType) + ": intranet"}
	}
	return nil
}
