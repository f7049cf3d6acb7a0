package slb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// gathered is what the wanted state of a Service depends on.
type gathered struct {
	in    build.Input
	gates []backend.GatedPod
	cache backendCache
	// readyGraceLeft is when a silent node no longer counts as ready, 0 when none is silent.
	readyGraceLeft time.Duration
}

// gather reads nodes, EndpointSlices, readiness gates and, where backends are addresses of pods, network interfaces.
func (r *Reconciler) gather(ctx context.Context, svc *corev1.Service, params annotation.Params, clb *model.Model, cache backendCache) (gathered, error) {
	in := inputOf(svc, params, r.opts.Config, clb)
	nodes, err := r.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return gathered{cache: cache}, fmt.Errorf("list the nodes: %w", err)
	}
	in.Now = time.Now()
	in.Nodes = backend.Nodes(nodes, r.opts.InstanceID, in.Now)
	if in.Slices, err = r.slices(svc); err != nil {
		return gathered{cache: cache}, err
	}
	gates, ungated := r.readGates(ctx, svc, cache.ungated, in)
	in.Waiting, cache.ungated = backend.WaitingAddresses(gates), ungated
	in.Interfaces, in.Blocks, err = r.clb.interfaces(ctx, cache.interfaces, backend.PodAddresses(in.Backends()))
	if err != nil {
		return gathered{cache: cache}, err
	}
	cache.interfaces = in.Interfaces
	for i := range gates {
		gates[i].Placed = in.Interfaces[gates[i].Address] != ""
	}
	in.Certificates, in.UsedCertificates = r.clb.readCertificates(ctx, params), usedCertificates(clb)
	return gathered{in: in, gates: gates, cache: cache, readyGraceLeft: backend.UntilSilence(in.Nodes, in.Now)}, nil
}

// inputOf is the part of the input that the Service and its CLB say.
func inputOf(svc *corev1.Service, params annotation.Params, config config.Config, clb *model.Model) build.Input {
	in := build.Input{Service: svc, Params: params, Config: config, ClusterID: clusterIDOn(clb, svc, config.ClusterID)}
	if clb == nil {
		return in
	}
	in.Observed = clb
	in.Exists, in.Reused, in.IPVersion, in.HTTPSPorts = true, clb.Reused, clb.LoadBalancer.AddressIPVersion, clb.HttpsPorts()
	if in.Reused {
		in.ForeignGroups = clb.ForeignGroups()
	}
	return in
}

// slices returns all EndpointSlices of the Service.
func (r *Reconciler) slices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	if r.opts.EndpointSlices == nil {
		return r.projectedSlices(svc)
	}
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})
	found, err := r.opts.EndpointSlices.Lister().EndpointSlices(svc.Namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("list the endpoint slices: %w", err)
	}
	return found, nil
}

// projectedSlices returns what the Endpoints object of the Service says; without one nothing is known.
func (r *Reconciler) projectedSlices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	endpoints, err := r.opts.Endpoints.Lister().Endpoints(svc.Namespace).Get(svc.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Endpoints of the Service: %w", err)
	}
	return backend.FromEndpoints(endpoints), nil
}
