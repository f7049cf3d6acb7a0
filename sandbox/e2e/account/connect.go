package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// Connection is what a kubeconfig and a cloud-config lead to.
type Connection struct {
	Client kubernetes.Interface
	Cloud  *alicloud.Client
	VPC    string
	// vSwitches are those of the cloud-config.
	vSwitches []string
}

// Connect reads both files, and the environment through getenv as the manager does. It calls nothing.
func Connect(kubeconfig, cloudConfig string, getenv func(string) string) (Connection, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Connection{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // the stories poll
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Connection{}, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	c, err := provider.ReadConfigFile(cloudConfig)
	if err != nil {
		return Connection{}, err //nolint:wrapcheck // it names the file
	}
	if c.Region == "" || c.VPCID == "" {
		return Connection{}, errors.New("the cloud-config has to name region and vpcid: there is no metadata service outside of the cloud")
	}
	env := provider.EnvironmentFrom(getenv)
	endpoints := env.Endpoints.Over(c.Endpoints).ForClient("", env.PlainHTTP)
	keys, _ := provider.Credentials(provider.CredentialsOptions{
		Environment: env, Config: c, Metadata: alicloud.NewMetadata(""), Region: c.Region, Endpoints: endpoints, SessionName: "e2e",
	})
	cloud, err := alicloud.New(alicloud.Options{Region: c.Region, Credentials: keys, Endpoints: endpoints})
	if err != nil {
		return Connection{}, fmt.Errorf("client of the cloud: %w", err)
	}
	return Connection{Client: client, Cloud: cloud, VPC: c.VPCID, vSwitches: c.VSwitchIDs}, nil
}

// Zones is the annotation zone-maps with one vSwitch in each of two zones, those of the cloud-config first. It is empty where there are no
// two.
func (c *Connection) Zones(ctx context.Context) (string, error) {
	all, err := c.Cloud.DescribeVSwitches(ctx, c.VPC)
	if err != nil {
		return "", fmt.Errorf("read the vSwitches: %w", err)
	}
	slices.SortStableFunc(all, func(a, b alicloud.VSwitch) int { return c.rank(b) - c.rank(a) })
	chosen := map[string]string{}
	var pairs []string
	for i := range all {
		if zone := all[i].ZoneID; chosen[zone] == "" && len(pairs) < 2 {
			chosen[zone] = all[i].ID
			pairs = append(pairs, zone+":"+all[i].ID)
		}
	}
	if len(pairs) < 2 {
		return "", nil
	}
	return strings.Join(pairs, ","), nil
}

func (c *Connection) rank(v alicloud.VSwitch) int {
	if slices.Contains(c.vSwitches, v.ID) {
		return 1
	}
	return 0
}
