package slb

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// officialCCM stands in for the official CCM, v2.14: it makes for a Service what that program makes, and says what that program would
// write. It shares no rule with the packages under test: annotations are read as they are written, and everything that the official CCM
// does not compare is left alone.
type officialCCM struct {
	*world
	clusterID string
	svc       *corev1.Service
}

func (w *world) official(svc *corev1.Service, clusterID string) officialCCM {
	return officialCCM{world: w, clusterID: clusterID, svc: svc}
}

// get returns the value of an annotation. A key with the newer prefix hides the older one, also with an empty value.
func (o officialCCM) get(suffix annotation.Suffix) string {
	if value, ok := o.svc.Annotations["service.beta.kubernetes.io/alibaba-cloud-"+string(suffix)]; ok {
		return value
	}
	return o.svc.Annotations["service.beta.kubernetes.io/alicloud-"+string(suffix)]
}

func (o officialCCM) or(suffix annotation.Suffix, fallback string) string {
	if value := o.get(suffix); value != "" {
		return value
	}
	return fallback
}

func (o officialCCM) reuses() bool { return o.get("loadbalancer-id") != "" }
func (o officialCCM) eni() bool {
	return o.svc.Annotations["service.beta.kubernetes.io/backend-type"] == "eni"
}

// ownsListeners reports whether the official CCM touches listeners at all.
func (o officialCCM) ownsListeners() bool {
	return !o.reuses() || o.get("loadbalancer-force-override-listeners") == "true"
}

func (o officialCCM) name() string {
	name := "a" + strings.ReplaceAll(string(o.svc.UID), "-", "")
	return name[:min(len(name), 32)]
}

func (o officialCCM) mark(port string) string {
	return strings.Join([]string{"k8s", port, o.svc.Name, o.svc.Namespace, o.clusterID}, "/")
}

// additionalTags reads the annotation: a value ends at a second "=".
func (o officialCCM) additionalTags() map[string]string {
	tags := map[string]string{}
	for item := range strings.SplitSeq(strings.TrimSpace(o.get("loadbalancer-additional-resource-tags")), ",") {
		parts := append(strings.Split(strings.TrimSpace(item), "="), "")
		if parts[0] != "" {
			tags[parts[0]] = parts[1]
		}
	}
	return tags
}

// officialAttributes says which annotation is which attribute of a listener, and of which protocols.
var officialAttributes = []struct{ suffix, attribute, protocols string }{
	{"scheduler", "Scheduler", "tcp udp http https"},
	{"persistence-timeout", "PersistenceTimeout", "tcp"},
	{"established-timeout", "EstablishedTimeout", "tcp"},
	{"proxy-protocol", "ProxyProtocolV2Enabled", "tcp udp"},
	{"cert-id", "ServerCertificateId", "https"},
	{"http2-enabled", "EnableHttp2", "https"},
	{"tls-cipher-policy", "TLSCipherPolicy", "https"},
	{"acl-status", "AclStatus", "tcp udp http https"},
	{"acl-id", "AclId", "tcp udp http https"},
	{"acl-type", "AclType", "tcp udp http https"},
	{"idle-timeout", "IdleTimeout", "http https"},
	{"request-timeout", "RequestTimeout", "http https"},
	{"sticky-session", "StickySession", "http https"},
	{"sticky-session-type", "StickySessionType", "http https"},
	{"cookie", "Cookie", "http https"},
	{"cookie-timeout", "CookieTimeout", "http https"},
	{"connection-drain", "ConnectionDrain", "tcp udp"},
	{"connection-drain-timeout", "ConnectionDrainTimeout", "tcp udp"},
	{"xforwardedfor-proto", "XForwardedFor_proto", "http https"},
	{"xforwardedfor-slbport", "XForwardedFor_SLBPORT", "http https"},
	{"xforwardedfor-clientsrcport", "XForwardedFor_ClientSrcPort", "http https"},
	{"health-check-connect-port", "HealthCheckConnectPort", "tcp udp http https"},
	{"health-check-interval", "HealthCheckInterval", "tcp udp http https"},
	{"healthy-threshold", "HealthyThreshold", "tcp udp http https"},
	{"unhealthy-threshold", "UnhealthyThreshold", "tcp udp http https"},
	{"health-check-type", "HealthCheckType", "tcp"},
	{"health-check-domain", "HealthCheckDomain", "tcp http https"},
	{"health-check-uri", "HealthCheckURI", "tcp http https"},
	{"health-check-httpcode", "HealthCheckHttpCode", "tcp http https"},
	{"health-check-connect-timeout", "HealthCheckConnectTimeout", "tcp udp"},
	{"health-check-switch", "HealthCheckSwitch", "tcp udp"},
	{"health-check-flag", "HealthCheck", "http https"},
	{"health-check-timeout", "HealthCheckTimeout", "http https"},
	{"health-check-method", "HealthCheckMethod", "http https"},
}

// listeners returns what the annotations say of the listeners, with the names of their groups in VServerGroupID.
func (o officialCCM) listeners() []alicloud.Listener {
	var all []alicloud.Listener
	for _, port := range o.svc.Spec.Ports {
		number := strconv.Itoa(int(port.Port))
		listener := alicloud.Listener{
			ListenerKey: alicloud.ListenerKey{Port: int(port.Port), Protocol: o.protocol(port)},
			Description: o.mark(number), VServerGroupID: o.groupOf(port), Attributes: alicloud.Attributes{},
		}
		for _, row := range officialAttributes {
			if value := o.get(annotation.Suffix("loadbalancer-" + row.suffix)); value != "" &&
				slices.Contains(strings.Fields(row.protocols), listener.Protocol) {
				listener.Attributes[row.attribute] = value
			}
		}
		if value, ok := listener.Attributes["ProxyProtocolV2Enabled"]; ok {
			listener.Attributes["ProxyProtocolV2Enabled"] = strconv.FormatBool(value == "on")
		}
		if target := firstPair(o.get("loadbalancer-forward-port"), number); target != "" && listener.Protocol == "http" {
			listener.Attributes["ListenerForward"], listener.Attributes["ForwardPort"] = "on", target
		}
		all = append(all, listener)
	}
	slices.SortStableFunc(all, func(a, b alicloud.Listener) int { // those that redirect come last
		return strings.Compare(a.Attributes["ForwardPort"], b.Attributes["ForwardPort"])
	})
	return all
}

// firstPair returns what stands behind "key:" in a list of pairs.
func firstPair(list, key string) string {
	for item := range strings.SplitSeq(list, ",") {
		if left, right, _ := strings.Cut(item, ":"); left == key {
			return right
		}
	}
	return ""
}

// protocol: the first entry of the annotation with the port decides, whatever the Service declares there.
func (o officialCCM) protocol(port corev1.ServicePort) string {
	for item := range strings.SplitSeq(o.get("loadbalancer-protocol-port"), ",") {
		if protocol, number, _ := strings.Cut(item, ":"); number == strconv.Itoa(int(port.Port)) {
			return protocol
		}
	}
	return strings.ToLower(string(port.Protocol))
}

func (o officialCCM) ownGroup(port corev1.ServicePort) string {
	if o.eni() {
		return o.mark(port.TargetPort.String())
	}
	return o.mark(strconv.Itoa(int(port.NodePort)))
}

// groupOf returns the id of the group that the port joins, else the name of its own.
func (o officialCCM) groupOf(port corev1.ServicePort) string {
	if o.reuses() {
		for item := range strings.SplitSeq(o.get("loadbalancer-vgroup-port"), ",") {
			if id, number, _ := strings.Cut(item, ":"); number == strconv.Itoa(int(port.Port)) {
				return id
			}
		}
	}
	return o.ownGroup(port)
}

// make makes everything that the official CCM makes for the Service, on the Service, too, and returns the id of the CLB.
func (o officialCCM) make() string {
	o.t.Helper()
	id := o.get("loadbalancer-id")
	if id == "" {
		id = o.createLB()
	}
	o.makeGroups(id)
	if o.reuses() {
		if value := o.get("loadbalancer-delete-protection"); value != "" {
			o.must(o.api.SetDeleteProtection(o.t.Context(), id, value))
		}
		if value := o.get("loadbalancer-modification-protection"); value != "" {
			o.must(o.api.SetModificationProtection(o.t.Context(), id, value, ""))
		}
		o.must(o.api.TagLoadBalancer(o.t.Context(), id, []alicloud.Tag{{Key: "kubernetes.reused.by.user", Value: "true"}}))
		for key, value := range o.additionalTags() {
			o.must(o.api.TagLoadBalancer(o.t.Context(), id, []alicloud.Tag{{Key: key, Value: value}}))
		}
	}
	if o.ownsListeners() {
		o.makeListeners(id)
	}
	lb := o.lb(id)
	o.svc.Finalizers = []string{"service.k8s.alibaba/resources"}
	o.svc.Labels = map[string]string{"service.beta.kubernetes.io/hash": "0", "service.k8s.alibaba/loadbalancer-id": id}
	o.svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: lb.Address}}
	o.calls()
	return id
}

func (o officialCCM) createLB() string {
	lb := alicloud.LoadBalancer{
		Name: o.or("loadbalancer-name", o.name()), AddressType: strings.ToLower(o.or("loadbalancer-address-type", "internet")),
		AddressIPVersion: o.get("loadbalancer-ip-version"), Address: o.get("loadbalancer-ip"),
		MasterZoneID: o.get("loadbalancer-master-zoneid"), SlaveZoneID: o.get("loadbalancer-slave-zoneid"),
		ResourceGroupID: o.get("loadbalancer-resource-group-id"), InstanceChargeType: o.or("loadbalancer-instance-charge-type", "PayByCLCU"),
		InternetChargeType: o.get("loadbalancer-charge-type"), Spec: o.get("loadbalancer-spec"),
		DeleteProtection:       o.or("loadbalancer-delete-protection", "on"),
		ModificationProtection: o.or("loadbalancer-modification-protection", "ConsoleProtection"),
		Tags:                   []alicloud.Tag{{Key: "kubernetes.do.not.delete", Value: o.name()}, {Key: "ack.aliyun.com", Value: o.clusterID}},
	}
	lb.Bandwidth, _ = strconv.Atoi(o.get("loadbalancer-bandwidth"))
	if lb.AddressType == alicloud.AddressIntranet {
		lb.VPCID, lb.VSwitchID = "vpc-emulator", o.or("loadbalancer-vswitch-id", "vsw-a")
	}
	if lb.InstanceChargeType == "PayBySpec" && lb.Spec == "" {
		lb.Spec = "slb.s1.small"
	}
	if lb.ModificationProtection == "ConsoleProtection" {
		lb.ModificationProtectionReason = "managed.by.ack"
	}
	for _, key := range slices.Sorted(maps.Keys(o.additionalTags())) {
		lb.Tags = append(lb.Tags, alicloud.Tag{Key: key, Value: o.additionalTags()[key]})
	}
	made, err := o.api.CreateLoadBalancer(o.t.Context(), lb, "")
	o.must(err)
	return made.ID
}

// makeGroups puts the backends into groups; ports that share a name share the group.
func (o officialCCM) makeGroups(id string) {
	for _, port := range o.svc.Spec.Ports {
		name, servers := o.groupOf(port), o.backends(port)
		groupID := name
		if !strings.HasPrefix(name, "rsp-") {
			if o.groupNamed(id, name) != "" {
				continue
			}
			var err error
			groupID, err = o.api.CreateVServerGroup(o.t.Context(), id, name, nil)
			o.must(err)
		}
		if len(servers) > 0 {
			o.must(o.api.AddBackends(o.t.Context(), groupID, servers))
		}
	}
}

// groupNamed returns the id of a group, which may be given as an id.
func (o officialCCM) groupNamed(id, name string) string {
	groups, err := o.api.DescribeVServerGroups(o.t.Context(), id)
	o.must(err)
	for _, group := range groups {
		if group.Name == name || group.ID == name {
			return group.ID
		}
	}
	return ""
}

func (o officialCCM) makeListeners(id string) {
	for _, listener := range o.listeners() {
		listener.VServerGroupID = o.groupNamed(id, listener.VServerGroupID)
		defaults := map[string]string{"Scheduler": "rr"}
		if strings.HasPrefix(listener.Protocol, "http") {
			defaults["HealthCheck"], defaults["StickySession"] = "off", "off"
		}
		for name, value := range defaults {
			if listener.Attributes[name] == "" {
				listener.Attributes[name] = value
			}
		}
		if listener.Attributes["ForwardPort"] != "" {
			listener.VServerGroupID = ""
		}
		o.must(o.api.CreateListener(o.t.Context(), id, listener))
		for item := range strings.SplitSeq(o.get("loadbalancer-domain-extensions"), ",") {
			if domain, certificate, ok := strings.Cut(item, ":"); ok && listener.Protocol == "https" {
				_, err := o.api.CreateDomainExtension(o.t.Context(), id, listener.Port,
					alicloud.DomainExtension{Domain: domain, CertificateID: certificate})
				o.must(err)
			}
		}
		o.must(o.api.StartListener(o.t.Context(), id, listener.ListenerKey))
	}
}

// officialCLB makes what the official CCM makes for a Service in the cloud.
func (w *world) officialCLB(svc *corev1.Service, clusterID string) alicloud.LoadBalancer {
	w.t.Helper()
	lb := w.lb(w.official(svc.DeepCopy(), clusterID).make())
	w.calls()
	return lb
}
