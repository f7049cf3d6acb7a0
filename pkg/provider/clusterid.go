package provider

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// officialClusterID is the literal with which the official CCM marks the resources of every cluster that sets no id.
const officialClusterID = "clusterid"

// clusterID returns the configured id, else one derived from the UID of kube-system, else the official literal where the
// role may not read Namespaces, as the vendor's published role may not.
func clusterID(ctx context.Context, configured string, kube kubernetes.Interface) (string, error) {
	if configured != "" {
		return configured, nil
	}
	namespace, err := kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Info("No cluster id: Global.clusterID is not set and the role may not read Namespace kube-system; "+
			"load balancers of several such clusters in one account cannot be distinguished", "using", officialClusterID)
		return officialClusterID, nil
	}
	if err != nil {
		return "", fmt.Errorf("derive the cluster id from Namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return derivedClusterID(namespace.UID), nil
}

// derivedClusterID has the form of the ids that the vendor's managed clusters have: "c" and 32 hexadecimal digits.
func derivedClusterID(uid types.UID) string {
	return "c" + strings.ReplaceAll(string(uid), "-", "")
}
