package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// cloudConfig is the cloud-config of the cluster, in the format of the official CCM, which has the parts of the access key in base64.
// The cloud controller manager and provider-initor start with it as it is. For light nodes it names the emulator as the endpoint of
// every product; programs on real machines reach the cloud at another address, which is in the environment of their images.
func cloudConfig(opts Options, emulatorURL string) ([]byte, error) {
	exists := opts.Emulator.Config
	if exists == nil {
		exists = cloud.DefaultConfig()
	}
	encode := base64.StdEncoding.EncodeToString
	global := map[string]any{
		"accessKeyID": encode([]byte(AccessKeyID)), "accessKeySecret": encode([]byte(AccessKeySecret)), "region": exists.Region,
		"vpcid": exists.VSwitches[0].VPCID, "vswitchid": exists.VSwitches[0].Zone + ":" + exists.VSwitches[0].ID,
	}
	if opts.NodeKind != Real {
		global["endpoints"] = map[string]string{"slb": emulatorURL, "nlb": emulatorURL, "vpc": emulatorURL, "ecs": emulatorURL, "sts": emulatorURL}
	}
	content, err := json.MarshalIndent(map[string]any{"Global": global}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the cloud-config: %w", err)
	}
	return append(content, '\n'), nil
}
