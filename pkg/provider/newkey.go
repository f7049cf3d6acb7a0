package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// tryKey makes one read with changed keys and returns why they cannot be used. A key of another account would find none of the cluster's
// load balancers and routes, which must not look as if they were gone.
func (c *Cloud) tryKey(ctx context.Context, keys alicloud.Credentials) error {
	client, err := c.clientOf(c.client.Region(), alicloud.StaticCredentials(keys))
	if err != nil {
		return err
	}
	vSwitches, err := client.DescribeVSwitches(ctx, c.place.vpcID)
	switch {
	case alicloud.IsNotFound(err), err == nil && len(vSwitches) == 0:
		return fmt.Errorf("the new access key cannot see VPC %s in region %s, accepted: a key of the account that the cluster is in",
			c.place.vpcID, client.Region())
	case err != nil && !alicloud.IsForbidden(err): // the controllers do not need to list vSwitches
		return c.explain(client.Region(), c.place.vpcID, err)
	}
	return c.checkAccount(ctx, client) // that it sees the VPC does not show whose key it is: a VPC may be shared with other accounts
}

// checkAccount returns an error if the changed key is known to belong to another account than the one in use. An account that cannot be
// determined rejects nothing: there may be no route to STS, and the cloud may already have deleted the key in use.
func (c *Cloud) checkAccount(ctx context.Context, changed *alicloud.Client) error {
	account, err := changed.AccountID(ctx)
	if err != nil {
		return nil //nolint:nilerr // unknown
	}
	keys, err := c.credentials.Credentials(ctx)
	if err != nil {
		return nil //nolint:nilerr // unknown
	}
	inUse, err := c.clientOf(c.client.Region(), alicloud.StaticCredentials(keys))
	if err != nil {
		return err
	}
	present, err := inUse.AccountID(ctx)
	if err != nil || present == account {
		return nil //nolint:nilerr // unknown, or the same
	}
	return fmt.Errorf("the new access key belongs to account %s, and the one in use to account %s, accepted: a key of account %s", account,
		present, present)
}

// explainRegion says that the region is wrong, where the cluster is known to be in another one: a VPC that is not found, or an endpoint
// that does not exist, is what a wrong region looks like.
func (c *Cloud) explainRegion(ctx context.Context, kube kubernetes.Interface, region string, err error) error {
	if alicloud.IsAuth(err) || alicloud.IsNoCredentials(err) || alicloud.IsForbidden(err) {
		return err
	}
	found, from := c.regionOfCluster(context.WithoutCancel(ctx), kube)
	if found == "" || found == region {
		return err
	}
	return fmt.Errorf("Global.region: %q, but %s in region %q: %w, accepted: the region of the cluster's VPC", region, from, found, err)
}

// regionOfCluster returns the region that the provider IDs of the nodes name, else that of this machine, and which of them it is. It is
// empty where neither is known, or the nodes are in several regions.
func (c *Cloud) regionOfCluster(ctx context.Context, kube kubernetes.Interface) (region, from string) {
	region, several := regionOfNodes(ctx, kube)
	if region != "" || several {
		return region, "the provider IDs of the nodes are"
	}
	region, err := c.metadata.RegionID(ctx)
	if err != nil {
		return "", ""
	}
	return region, "this machine is"
}

func regionOfNodes(ctx context.Context, kube kubernetes.Interface) (region string, several bool) {
	if kube == nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsObjectTimeout)
	defer cancel()
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxNodesAsked})
	if err != nil {
		return "", false
	}
	return oneRegion(list.Items)
}

func oneRegion(nodes []corev1.Node) (region string, several bool) {
	for i := range nodes {
		id, err := node.ParseProviderID(nodes[i].Spec.ProviderID)
		switch {
		case err != nil:
		case region == "":
			region = id.Region
		case region != id.Region:
			return "", true
		}
	}
	return region, false
}
