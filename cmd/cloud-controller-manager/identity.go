package main

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// controllerClients returns the clients of the controllers under --use-service-account-credentials: one identity each where
// the role may make their tokens, else this process's own. The vendor's published manifest sets the flag under a role that
// may not, and every call of every controller would fail.
func controllerClients(
	ctx context.Context, kube kubernetes.Interface, config *rest.Config, each cloudprovider.ControllerClientBuilder,
) (cloudprovider.ControllerClientBuilder, error) {
	allowed, err := provider.Allowed(ctx, kube, authorizationv1.ResourceAttributes{
		Namespace: metav1.NamespaceSystem, Verb: "create", Resource: "serviceaccounts", Subresource: "token",
	})
	if err != nil {
		return nil, fmt.Errorf("--use-service-account-credentials: %w", err)
	}
	if allowed {
		return each, nil
	}
	klog.InfoS("All controllers use the identity of this process, because the role does not allow creating serviceaccounts/token",
		"flag", "--use-service-account-credentials", "namespace", metav1.NamespaceSystem)
	return clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}, nil
}

// guardedClients are clients that delete a Node only as guard allows it. The stock node-lifecycle controller deletes Nodes by
// name, whoever has the name by then; no other controller deletes any.
type guardedClients struct {
	each  cloudprovider.ControllerClientBuilder
	guard func(http.RoundTripper) http.RoundTripper
}

// Config implements [cloudprovider.ControllerClientBuilder].
func (g guardedClients) Config(name string) (*rest.Config, error) {
	config, err := g.each.Config(name)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(g.guard)
	return config, nil
}

// ConfigOrDie implements [cloudprovider.ControllerClientBuilder].
func (g guardedClients) ConfigOrDie(name string) *rest.Config {
	return orDie(g.Config(name))
}

// Client implements [cloudprovider.ControllerClientBuilder].
func (g guardedClients) Client(name string) (kubernetes.Interface, error) {
	config, err := g.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// ClientOrDie implements [cloudprovider.ControllerClientBuilder].
func (g guardedClients) ClientOrDie(name string) kubernetes.Interface {
	return orDie(g.Client(name))
}

func orDie[T any](value T, err error) T {
	if err != nil {
		klog.ErrorS(err, "Cannot create a client for a controller")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	return value
}
