package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// connectTimeout bounds the start. A longer silence would hide a wrong endpoint from the user; a shorter one would
	// turn a hiccup of the cloud into a restart.
	connectTimeout = 30 * time.Second
	connectRetry   = 2 * time.Second
)

// Connect finds region, VPC, vSwitches and cluster id, and makes one read to prove that the key, the region and the VPC
// are right, so that a mistake ends the start with one line instead of filling the log for ever.
//
// The cluster id is the configured one, else one derived from the UID of the kube-system Namespace, else the official
// CCM's literal "clusterid".
func (c *Cloud) Connect(ctx context.Context, kube kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := c.checkSettings(); err != nil {
		return err
	}
	var err error
	if c.clusterID, err = clusterID(ctx, c.config.ClusterID, kube); err != nil {
		return err
	}
	client, err := c.newClient(ctx)
	if err != nil {
		return err
	}
	here, err := c.locate(ctx, client, kube)
	if err != nil {
		return c.explainRegion(ctx, kube, client.Region(), err)
	}
	vSwitches, err := c.verify(ctx, client, here.vpcID)
	if err != nil {
		return c.explainRegion(ctx, kube, client.Region(), err)
	}
	if len(here.vSwitchIDs) == 0 {
		here.vSwitchIDs = byFreeAddresses(vSwitches)
	}
	slices, err := mayListEndpointSlices(ctx, kube)
	if err != nil {
		return err
	}
	c.vSwitchesRead, c.clusterInfo = time.Now(), clusterInfoAddresses(ctx, kube)
	c.client, c.place, c.vSwitches, c.endpointSlices = client, here, vSwitches, slices
	if changing, ok := c.credentials.(interface {
		Try(try func(context.Context, alicloud.Credentials) error)
	}); ok {
		changing.Try(c.tryKey)
	}
	klog.FromContext(ctx).Info("Connected to the cloud",
		"region", client.Region(), "credentials", c.keySource, "vpc", here.vpcID, "vSwitches", here.vSwitchIDs, "clusterID", c.clusterID)
	return nil
}

// newClient makes no call but that for the region where none is configured. The settings have been checked.
func (c *Cloud) newClient(ctx context.Context) (*alicloud.Client, error) {
	if c.env.PlainHTTP {
		klog.FromContext(ctx).Info("Calls to the cloud are not encrypted: anyone on the network path can read and change them, and use temporary keys. Use this for tests only",
			"environment", envScheme)
	}
	if len(c.config.Unused) > 0 {
		klog.FromContext(ctx).Info("Ignoring fields of the cloud-config that have no effect", "fields", c.config.Unused)
	}
	if len(c.config.Unknown) > 0 {
		klog.FromContext(ctx).Info("The cloud-config has fields that are unknown and have no effect: check their spelling", "fields",
			c.config.Unknown)
	}
	c.metadata = alicloud.NewMetadata(c.endpoints()["metadata"])
	if c.settings.PlainMetadata {
		c.metadata = c.metadata.WithoutTokens()
	}
	region, err := c.region(ctx)
	if err != nil {
		return nil, err
	}
	c.credentials, c.keySource = Credentials(CredentialsOptions{
		Environment: c.env, Config: c.config, File: c.settings.CredentialsFile, Metadata: c.metadata,
		Region: region, Endpoints: c.clientEndpoints(), SessionName: sessionName(c.clusterID),
	})
	return c.clientOf(region, c.credentials)
}

func (c *Cloud) clientOf(region string, keys alicloud.CredentialsProvider) (*alicloud.Client, error) {
	client, err := alicloud.New(alicloud.Options{
		Region: region, Credentials: keys, Endpoints: c.clientEndpoints(), UserAgent: userAgent(c.clusterID),
		MaxBackendsPerCall: c.settings.BackendBatch, Paused: func() bool { return c.onlyReads.Load() || c.pause.active() },
	})
	if err != nil {
		return nil, fmt.Errorf("cloud client: %w", err)
	}
	return client, nil
}

func (c *Cloud) region(ctx context.Context) (string, error) {
	if c.config.Region != "" {
		return c.config.Region, nil
	}
	region, err := c.metadata.RegionID(ctx)
	if err != nil {
		return "", fmt.Errorf("Global.region: not set, and the metadata service did not return it: %w, accepted: a region id such as \"cn-hangzhou\"", err)
	}
	return region, nil
}

// verify reads the VPC's vSwitches, which proves that key, region and VPC are right. A missing answer is tried again until
// ctx ends; a refusal is final, except that a missing permission for this one action proves the key as well and forbids
// nothing that the controllers need.
func (c *Cloud) verify(ctx context.Context, client *alicloud.Client, vpcID string) ([]alicloud.VSwitch, error) {
	var vSwitches []alicloud.VSwitch
	var last error
	err := wait.PollUntilContextCancel(ctx, connectRetry, true, func(ctx context.Context) (bool, error) {
		vSwitches, last = client.DescribeVSwitches(ctx, vpcID)
		if alicloud.IsAmbiguous(last) || alicloud.IsThrottled(last) || temporarilyWithoutKeys(last) {
			klog.FromContext(ctx).Info("Waiting for a response from the cloud", "reason", last.Error())
			return false, nil
		}
		return true, nil
	})
	switch {
	case err != nil || (last != nil && !alicloud.IsForbidden(last)):
		return nil, c.explain(client.Region(), vpcID, last)
	case last == nil && len(vSwitches) == 0:
		return nil, fmt.Errorf("Global.vpcid: %q: no vSwitch of it is in region %s, accepted: a VPC of the region", vpcID, client.Region())
	case last != nil:
		klog.FromContext(ctx).Info("The access key is not allowed to list the vSwitches of the VPC; using the VPC as configured", "permission",
			"vpc:DescribeVSwitches")
	}
	return vSwitches, nil
}

func temporarilyWithoutKeys(err error) bool {
	var e *alicloud.CredentialsError
	return errors.As(err, &e) && e.IsTemporary()
}

// explain names the field that a refused call points to.
func (c *Cloud) explain(region, vpcID string, err error) error {
	switch {
	case alicloud.IsNoCredentials(err):
		return fmt.Errorf("%s: %w, accepted: a source of keys that works", c.keySource, err)
	case alicloud.IsAuth(err):
		return fmt.Errorf("%s: the cloud refuses the access key: %w, accepted: an active key of the account", c.keySource, err)
	case isUnknownRegion(err):
		return fmt.Errorf("Global.region: %q: %w, accepted: a region of the account such as \"cn-hangzhou\"", region, err)
	case alicloud.IsNotFound(err):
		return fmt.Errorf("Global.vpcid: %q: %w, accepted: a VPC of region %s", vpcID, err, region)
	case alicloud.IsAmbiguous(err):
		return fmt.Errorf("region %q: no answer from the VPC endpoint within %s: %w, accepted: an existing Global.region, or VPC_ENDPOINT as \"host:port\"", region, connectTimeout, err)
	default:
		return fmt.Errorf("read the vSwitches of VPC %s: %w", vpcID, err)
	}
}

// isUnknownRegion reports whether the cloud says that there is no such region.
func isUnknownRegion(err error) bool {
	return alicloud.HasCode(err, "InvalidRegionId.NotFound", "InvalidRegionId")
}
