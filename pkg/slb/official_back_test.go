package slb

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// wouldWrite returns what the official CCM would write when it compares everything, as it does for a Service whose hash changed.
func (o officialCCM) wouldWrite() []string {
	o.t.Helper()
	id := o.get("loadbalancer-id")
	if id == "" {
		found, err := o.api.DescribeLoadBalancers(o.t.Context(),
			alicloud.LoadBalancerQuery{Tag: &alicloud.Tag{Key: "kubernetes.do.not.delete", Value: o.name()}})
		if o.must(err); len(found) != 1 {
			return []string{fmt.Sprintf("finds %d CLBs by tag", len(found))}
		}
		id = found[0].ID
	}
	writes := slices.Concat(o.attributeWrites(o.lb(id)), o.tagWrites(o.lb(id)), o.groupWrites(id))
	if o.ownsListeners() {
		writes = append(writes, o.listenerWrites(id)...)
	}
	o.calls()
	return writes
}

func (o officialCCM) attributeWrites(lb alicloud.LoadBalancer) (writes []string) {
	compare := func(suffix annotation.Suffix, have string) {
		if want := o.get(suffix); want != "" && want != have {
			writes = append(writes, fmt.Sprintf("%s: %q -> %q", suffix, have, want))
		}
	}
	compare("loadbalancer-name", lb.Name)
	compare("loadbalancer-delete-protection", lb.DeleteProtection)
	compare("loadbalancer-modification-protection", lb.ModificationProtection)
	compare("loadbalancer-master-zoneid", lb.MasterZoneID)
	compare("loadbalancer-slave-zoneid", lb.SlaveZoneID)
	compare("loadbalancer-ip-version", lb.AddressIPVersion)
	compare("loadbalancer-ip", lb.Address)
	compare("loadbalancer-instance-charge-type", lb.InstanceChargeType)
	if lb.InstanceChargeType == "PayBySpec" {
		compare("loadbalancer-spec", lb.Spec)
	}
	if want := strings.ToLower(o.get("loadbalancer-address-type")); want != "" && want != lb.AddressType {
		writes = append(writes, "address type "+want)
	}
	if lb.AddressType == alicloud.AddressInternet {
		compare("loadbalancer-charge-type", lb.InternetChargeType)
		if o.get("loadbalancer-charge-type") == "paybybandwidth" {
			compare("loadbalancer-bandwidth", strconv.Itoa(lb.Bandwidth))
		}
	}
	return writes
}

// tagWrites: with the annotation, tags of others go.
func (o officialCCM) tagWrites(lb alicloud.LoadBalancer) (writes []string) {
	own := "kubernetes.do.not.delete"
	if o.reuses() {
		own = "kubernetes.reused.by.user"
	}
	if _, ok := lb.Tag(own); !ok && len(lb.Tags) < 10 {
		writes = append(writes, "tag "+own)
	}
	want := o.additionalTags()
	for key, value := range want {
		if have, ok := lb.Tag(key); !ok || have != value {
			writes = append(writes, fmt.Sprintf("tag %s: %q -> %q", key, have, value))
		}
	}
	for _, tag := range lb.Tags {
		_, wanted := want[tag.Key]
		if foreign := !slices.Contains([]string{"kubernetes.do.not.delete", "ack.aliyun.com", "kubernetes.reused.by.user", "mine"},
			tag.Key); foreign && !wanted && len(want) > 0 {
			writes = append(writes, "untag "+tag.Key)
		}
	}
	return writes
}

func (o officialCCM) groupWrites(id string) (writes []string) {
	wanted := map[string]bool{}
	for _, port := range o.svc.Spec.Ports {
		groupID := o.groupNamed(id, o.groupOf(port))
		if groupID == "" {
			writes = append(writes, "create group "+o.groupOf(port))
			continue
		}
		wanted[groupID] = true
		writes = append(writes, o.backendWrites(groupID, port)...)
	}
	groups, err := o.api.DescribeVServerGroups(o.t.Context(), id)
	o.must(err)
	for _, group := range groups {
		if !wanted[group.ID] && o.ours(group.Name) {
			writes = append(writes, "delete group "+group.Name)
		}
	}
	return writes
}

// ours reports whether a description or name is a mark of the Service.
func (o officialCCM) ours(text string) bool {
	parts := strings.Split(text, "/")
	return len(parts) == 5 && parts[0] == "k8s" && parts[2] == o.svc.Name && parts[3] == o.svc.Namespace && parts[4] == o.clusterID
}

func (o officialCCM) backendWrites(groupID string, port corev1.ServicePort) (writes []string) {
	group, err := o.api.DescribeVServerGroup(o.t.Context(), groupID)
	o.must(err)
	want := o.backends(port)
	for _, server := range want {
		at := slices.IndexFunc(group.Backends, func(b alicloud.Backend) bool { return b.BackendKey == server.BackendKey })
		switch {
		case at < 0:
			writes = append(writes, fmt.Sprintf("%s: add %v", group.Name, server))
		case group.Backends[at].Description != server.Description,
			o.get("loadbalancer-ignore-weight-update") != "on" && group.Backends[at].Weight != server.Weight:
			writes = append(writes, fmt.Sprintf("%s: set %v -> %v", group.Name, group.Backends[at], server))
		}
	}
	for _, server := range group.Backends {
		wanted := slices.ContainsFunc(want, func(b alicloud.Backend) bool { return b.BackendKey == server.BackendKey })
		if !wanted && o.ours(server.Description) {
			writes = append(writes, fmt.Sprintf("%s: remove %v", group.Name, server))
		}
	}
	return writes
}

func (o officialCCM) listenerWrites(id string) (writes []string) {
	present, err := o.api.DescribeListeners(o.t.Context(), id)
	o.must(err)
	wanted := map[alicloud.ListenerKey]bool{}
	for _, want := range o.listeners() {
		wanted[want.ListenerKey] = true
		at := slices.IndexFunc(present[id], func(l alicloud.Listener) bool { return l.ListenerKey == want.ListenerKey })
		if at < 0 {
			writes = append(writes, "create listener "+want.String())
			continue
		}
		writes = append(writes, o.changesOf(id, want, present[id][at])...)
	}
	for _, have := range present[id] {
		if !wanted[have.ListenerKey] && o.ours(have.Description) {
			writes = append(writes, "delete listener "+have.String())
		}
	}
	return writes
}

func (o officialCCM) changesOf(id string, want, have alicloud.Listener) (writes []string) {
	note := func(name, from, to string) {
		writes = append(writes, fmt.Sprintf("%s %s: %q -> %q", want.ListenerKey, name, from, to))
	}
	if have.Status == alicloud.ListenerStopped {
		note("status", have.Status, "running")
	}
	if want.Protocol == "http" &&
		(want.Attributes["ForwardPort"] != have.Attributes["ForwardPort"] ||
			(want.Attributes["ListenerForward"] == "on") != (have.Attributes["ListenerForward"] == "on")) {
		note("redirect, which makes it anew", have.Attributes["ForwardPort"], want.Attributes["ForwardPort"])
	}
	if want.Attributes["ListenerForward"] == "on" {
		return writes
	}
	if have.Description != want.Description {
		note("description", have.Description, want.Description)
	}
	if group := o.groupNamed(id, want.VServerGroupID); group != have.VServerGroupID {
		note("group", have.VServerGroupID, group)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Attributes)) {
		unused := strings.HasPrefix(name, "Acl") && name != "AclStatus" && want.Attributes["AclStatus"] != "on" ||
			name == "ConnectionDrainTimeout" && want.Attributes["ConnectionDrain"] != "on"
		if !unused && plain(want.Attributes[name]) != plain(have.Attributes[name]) {
			note(name, have.Attributes[name], want.Attributes[name])
		}
	}
	return writes
}

// plain is a value as it is compared: numbers as numbers, lists as sets.
func plain(text string) string {
	if number, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(number)
	}
	items := strings.Split(text, ",")
	slices.Sort(items)
	return strings.Join(items, ",")
}
