package provider

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

const (
	// apiServerService is the Service of the API server in the namespace default, whose endpoints are the API servers themselves.
	apiServerService = "kubernetes"
	// clusterInfo is the ConfigMap of kubeadm that shows new nodes where the API server is: at the load balancer in front of it.
	clusterInfo = "cluster-info"
)

// clusterInfoAddresses returns the addresses of the API server in cluster-info, none where it does not exist or may not be read: not all
// installers create it.
func clusterInfoAddresses(ctx context.Context, kube kubernetes.Interface) []string {
	found, err := kube.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, clusterInfo, metav1.GetOptions{})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the public address of the API server", "configMap", metav1.NamespacePublic+"/"+clusterInfo,
			"reason", err.Error())
		return nil
	}
	config, err := clientcmd.Load([]byte(found.Data["kubeconfig"]))
	if err != nil {
		klog.FromContext(ctx).Info("The kubeconfig in cluster-info cannot be read", "err", err)
		return nil
	}
	var addresses []string
	for _, cluster := range config.Clusters {
		addresses = append(addresses, APIServerAddresses(ctx, cluster.Server)...)
	}
	return addresses
}

// apiServers finds the API servers in the caches. The address by which a pod reaches them is the cluster IP of a Service, which no load
// balancer has.
func (c *Cloud) apiServers(factory informers.SharedInformerFactory, instanceID func(*corev1.Node) (string, error)) func() policy.APIServer {
	nodeLister, endpoints := factory.Core().V1().Nodes().Lister(), c.apiServerEndpoints(factory)
	return func() policy.APIServer {
		found := endpoints()
		found.Instances = controlPlaneInstances(nodeLister, instanceID, found.Addresses)
		found.Addresses = slices.Concat(found.Addresses, c.clusterInfo)
		return found
	}
}

// apiServerEndpoints returns what reads the addresses and the port of the API servers.
func (c *Cloud) apiServerEndpoints(factory informers.SharedInformerFactory) func() policy.APIServer {
	if !c.endpointSlices {
		lister := factory.Core().V1().Endpoints().Lister()
		return func() (found policy.APIServer) {
			endpoints, err := lister.Endpoints(metav1.NamespaceDefault).Get(apiServerService)
			if err != nil {
				return found // not known
			}
			for _, subset := range endpoints.Subsets {
				for _, address := range subset.Addresses {
					found.Addresses = append(found.Addresses, address.IP)
				}
				for _, port := range subset.Ports {
					found.Port = int(port.Port)
				}
			}
			return found
		}
	}
	lister := factory.Discovery().V1().EndpointSlices().Lister()
	ofService := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: apiServerService})
	return func() (found policy.APIServer) {
		endpointSlices, err := lister.EndpointSlices(metav1.NamespaceDefault).List(ofService)
		if err != nil {
			return found // not known
		}
		for _, slice := range endpointSlices {
			for _, endpoint := range slice.Endpoints {
				found.Addresses = append(found.Addresses, endpoint.Addresses...)
			}
			for _, port := range slice.Ports {
				if port.Port != nil {
					found.Port = int(*port.Port)
				}
			}
		}
		return found
	}
}

// controlPlaneInstances returns the instances of the nodes with a role label of the control plane, and of those with one of the addresses.
func controlPlaneInstances(lister corelisters.NodeLister, instanceID func(*corev1.Node) (string, error), addresses []string) []string {
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil // not known
	}
	var instances []string
	for _, node := range all {
		hasAddress := slices.ContainsFunc(node.Status.Addresses, func(address corev1.NodeAddress) bool {
			return slices.Contains(addresses, address.Address)
		})
		if !hasAddress && !nodes.IsControlPlane(node) {
			continue
		}
		if id, err := instanceID(node); err == nil {
			instances = append(instances, id)
		}
	}
	return instances
}
