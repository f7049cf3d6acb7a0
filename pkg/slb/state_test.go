package slb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// cloudLB is a CLB in the emulator's state, without what differs from run to run.
type cloudLB struct {
	Name, AddressType, DeleteProtection, Protection, Reason, ChargeType, Spec string
	Bandwidth                                                                 int
	Tags                                                                      map[string]string
	Listeners                                                                 map[string]map[string]any
	Groups                                                                    map[string][]string
}

// state returns the CLBs by name. Groups of one name are kept apart, so that a leaked one shows.
func (w *world) state() map[string]cloudLB {
	w.t.Helper()
	var raw rawState
	w.read("state", &raw)
	return raw.plain()
}

// rawState is the emulator's state as far as it matters here.
type rawState struct {
	LoadBalancers []stateLB
	Acls          []stateACL
}

func (raw rawState) plain() map[string]cloudLB {
	all := map[string]cloudLB{}
	for _, lb := range raw.LoadBalancers {
		name := lb.LoadBalancerName
		for all[name].Name != "" {
			name += "+"
		}
		all[name] = lb.plain()
	}
	for _, list := range raw.Acls {
		if strings.HasPrefix(list.AclName, model.AccessListPrefix) {
			all[list.AclName] = list.plain()
		}
	}
	return all
}

type stateACL struct {
	AclName   string
	AclEntrys struct{ AclEntry []struct{ AclEntryIP string } }
}

// plain shows a list as if it were a CLB with one group, so that a leaked one is a difference.
func (l stateACL) plain() cloudLB {
	entries := []string{}
	for _, entry := range l.AclEntrys.AclEntry {
		entries = append(entries, entry.AclEntryIP)
	}
	slices.Sort(entries)
	return cloudLB{Name: l.AclName, Groups: map[string][]string{"entries": entries}}
}

type stateLB struct {
	LoadBalancerId, LoadBalancerName, AddressType, DeleteProtection                string
	ModificationProtectionStatus, ModificationProtectionReason, InstanceChargeType string
	LoadBalancerSpec                                                               string
	Bandwidth                                                                      int
	Tags                                                                           struct {
		Tag []struct{ TagKey, TagValue string }
	}
	Listeners     []map[string]any
	VServerGroups []struct {
		VServerGroupId, VServerGroupName string
		BackendServers                   []struct {
			ServerId, ServerIp, Type, Description string
			Port, Weight                          int
		}
	}
}

func (lb stateLB) plain() cloudLB {
	out := cloudLB{
		Name: lb.LoadBalancerName, AddressType: lb.AddressType, DeleteProtection: lb.DeleteProtection,
		Protection: lb.ModificationProtectionStatus, Reason: lb.ModificationProtectionReason, ChargeType: lb.InstanceChargeType,
		Spec: lb.LoadBalancerSpec, Bandwidth: lb.Bandwidth,
		Tags: map[string]string{}, Listeners: map[string]map[string]any{}, Groups: map[string][]string{},
	}
	for _, tag := range lb.Tags.Tag {
		out.Tags[tag.TagKey] = tag.TagValue
	}
	names := map[string]string{}
	for _, group := range lb.VServerGroups {
		name := group.VServerGroupName
		for out.Groups[name] != nil {
			name += "+"
		}
		names[group.VServerGroupId] = name
		out.Groups[name] = []string{}
		for _, b := range group.BackendServers {
			server := b.ServerId
			if b.Type == alicloud.BackendENI {
				server = b.ServerIp // ids of network interfaces differ from run to run
			}
			out.Groups[name] = append(out.Groups[name], fmt.Sprintf("%s %s:%d weight %d %s", b.Type, server, b.Port, b.Weight, b.Description))
		}
	}
	for _, listener := range lb.Listeners {
		key := fmt.Sprintf("%v:%v", listener["ListenerProtocol"], listener["ListenerPort"])
		for _, name := range []string{"LoadBalancerId", "CreateTime", "LoopbackEndpoint", "AclId", "AclIds"} {
			delete(listener, name)
		}
		listener["domainExtensions"] = plainExtensions(listener["domainExtensions"])
		group, _ := listener["VServerGroupId"].(string)
		listener["VServerGroupId"] = names[group]
		out.Listeners[key] = listener
	}
	return out
}

// plainExtensions shows domain extensions as domain:certificate, whatever the order in which they were made.
func plainExtensions(wire any) []string {
	texts := []string{}
	extensions, _ := wire.([]any)
	for _, extension := range extensions {
		fields, _ := extension.(map[string]any)
		texts = append(texts, fmt.Sprintf("%v:%v", fields["Domain"], fields["ServerCertificateId"]))
	}
	slices.Sort(texts)
	return texts
}
