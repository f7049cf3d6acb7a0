package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

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
		global["endpoints"] = map[string]string{"slb": emulatorURL, "nlb": emulatorURL, "vpc": emulatorURL, "ecs": emulatorURL,
			"sts": emulatorURL, "quotas": emulatorURL}
	}
	if quotas := knownQuotas(exists.Quotas); len(quotas) > 0 {
		global["quotas"] = quotas
	}
	content, err := json.MarshalIndent(map[string]any{"Global": global}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the cloud-config: %w", err)
	}
	return append(content, '\n'), nil
}

// knownQuotas are those that the manager counts with and that the cloud has other values of than the published ones.
func knownQuotas(limits cloud.Limits) map[string]int {
	quotas := map[string]int{
		"slb_quota_backendservers_num": limits.BackendsPerLB, "slb_quota_backendserver_attached_num": limits.LBsPerInstance,
		"slb_quota_listeners_num": limits.ListenersPerLB, "nlb_quota_loadbalancer_noeci_servers_num": limits.ServersPerNLB,
		"nlb_quota_server_added_num": limits.NLBGroupsPerServer,
	}
	maps.DeleteFunc(quotas, func(_ string, value int) bool { return value == 0 })
	return quotas
}
