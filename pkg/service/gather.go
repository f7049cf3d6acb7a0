package service

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
)

// gathered is what the wanted state of a Service depends on.
type gathered struct {
	Inputs
	gates []backend.GatedPod
	cache backendCache
	// lastValid are the parameters as they were last accepted, each by itself.
	lastValid *annotation.Params
	// readyGraceLeft is when a silent node no longer counts as ready, 0 when none is silent.
	readyGraceLeft time.Duration
}

// gather reads nodes, EndpointSlices, readiness gates and, where backends are addresses of pods, network interfaces.
func (r *Reconciler) gather(ctx context.Context, in Inputs, known state) (gathered, error) {
	found := gathered{Inputs: in, cache: known.cache}
	nodes, err := r.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return found, fmt.Errorf("list the nodes: %w", err)
	}
	found.Now = time.Now()
	found.Nodes = backend.Nodes(nodes, r.opts.InstanceID, found.Now)
	found.readyGraceLeft = backend.UntilSilence(found.Nodes, found.Now)
	if found.Slices, err = r.slices(in.Service); err != nil {
		return found, err
	}
	gates, ungated := r.readGates(ctx, in.Service, known.cache.ungated, known.balancer.Backends(found.Inputs))
	found.Waiting, found.cache.ungated = backend.WaitingAddresses(gates), ungated
	addresses := backend.PodAddresses(known.balancer.Backends(found.Inputs))
	if found.Interfaces, found.Blocks, err = r.network.interfaces(ctx, known.cache.interfaces, addresses); err != nil {
		return found, err
	}
	found.cache.interfaces = found.Interfaces
	for i := range gates {
		gates[i].Placed = found.Interfaces[gates[i].Address] != ""
	}
	found.gates = gates
	return found, nil
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
