package cluster

import (
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/podprocess"
)

const (
	// onPremisesPrefix begins the names of machines that are in no cloud.
	onPremisesPrefix = "idc-"
	// nowhere is an address on which nobody listens: what a machine outside of ECS finds at that of the metadata service.
	nowhere = "http://127.0.0.1:1"
)

// onPremises returns machines that the cloud does not know.
func onPremises(n int) []lightnode.Instance {
	machines := make([]lightnode.Instance, 0, n)
	for i := range n {
		name := fmt.Sprintf("%s%d", onPremisesPrefix, i+1)
		machines = append(machines, lightnode.Instance{
			ID: name, Name: name, PrivateIP: fmt.Sprintf("192.168.%d.%d", i/250, i%250+1), Running: true,
		})
	}
	return machines
}

// runner runs the pods of this project's programs, if there are any.
func (c *Cluster) runner(opts Options) (lightnode.Runner, error) {
	if opts.BinDir == "" {
		return nil, nil
	}
	return podprocess.New(podprocess.Options{
		BinDir: opts.BinDir, Client: c.Client, Config: c.Config, Dir: c.files.state, CloudURL: c.Cloud.URL,
		Metadata: func(instanceID string) string {
			if strings.HasPrefix(instanceID, onPremisesPrefix) {
				return nowhere
			}
			return c.Cloud.MetadataURL(instanceID)
		},
	})
}
