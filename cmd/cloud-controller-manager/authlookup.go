package main

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cloud-provider/options"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// authenticationConfigMap holds the certificates by which the metrics' readers may be known.
const authenticationConfigMap = "extension-apiserver-authentication"

// lookupTimeout bounds asking for the permissions; an API server that does not answer is waited for elsewhere.
const lookupTimeout = 5 * time.Second

// skipForbiddenLookup leaves out the lookup of certificates in a ConfigMap that the role may not read, as that of the vendor's guide. It
// would be tried again and again, with lines in the log each time. Without it, metrics cannot be read with a client certificate.
func skipForbiddenLookup(opts *options.CloudControllerManagerOptions) {
	if opts.Authentication == nil || opts.Authentication.SkipInClusterLookup {
		return
	}
	load := rest.InClusterConfig
	if file := opts.Authentication.RemoteKubeConfigFile; file != "" { // without one, this function would log warnings
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", file) }
	}
	config, err := load()
	if err != nil {
		return // the stock code reports it
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	for _, verb := range []string{"get", "list", "watch"} {
		allowed, err := provider.Allowed(ctx, client, authorizationv1.ResourceAttributes{
			Namespace: metav1.NamespaceSystem, Verb: verb, Resource: "configmaps", Name: authenticationConfigMap,
		})
		if err != nil {
			return
		}
		if !allowed {
			opts.Authentication.SkipInClusterLookup = true
			return
		}
	}
}
