package slb

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// kind is one kind of Service that the official CCM serves.
type kind struct {
	name    string
	service func(*world) *corev1.Service
	// byHand changes what stands, or what the Service shows, before it is adopted.
	byHand func(w *world, id string)
	// fights says that the official CCM itself writes at every pass: another Service wants the same.
	fights bool
	// stays says that something of the CLB outlives the Service.
	stays bool
}

// made is a Service that needs nothing of the world.
func made(f func() *corev1.Service, change ...func(*corev1.Service)) func(*world) *corev1.Service {
	return func(*world) *corev1.Service {
		svc := f()
		for _, g := range change {
			g(svc)
		}
		return svc
	}
}

// annotated sets annotations, given as pairs.
func annotated(pairs ...any) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		for i := 0; i < len(pairs); i += 2 {
			annotate(svc, pairs[i].(annotation.Suffix), pairs[i+1].(string))
		}
	}
}

func onPorts(ports ...int32) func() *corev1.Service {
	return func() *corev1.Service { return testService("web", ports...) }
}

func isLocal(svc *corev1.Service) {
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

func isPublic(svc *corev1.Service) { annotate(svc, annotation.AddressType, "internet") }

func plainKinds() []kind {
	return []kind{
		{name: "TCP and UDP", service: made(webService)},
		{name: "TCP and UDP on one port", service: made(webService, func(svc *corev1.Service) {
			svc.Spec.Ports = []corev1.ServicePort{testPort(53, corev1.ProtocolTCP), testPort(53, corev1.ProtocolUDP)}
		})},
		{name: "one node port for two ports", service: made(onPorts(80, 81), func(svc *corev1.Service) {
			svc.Spec.Ports[1].Protocol, svc.Spec.Ports[1].NodePort = corev1.ProtocolUDP, svc.Spec.Ports[0].NodePort
		})},
		{name: "four protocols", service: made(fourProtocols)},
		{name: "Local", service: made(webService, isLocal)},
		{name: "Local with four protocols", service: made(fourProtocols, isLocal)},
		{name: "public", service: made(onPorts(80), func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.AddressType)) })},
		{name: "Internet with a capital", service: made(onPorts(80), annotated(annotation.AddressType, "Internet"))},
		{name: "no label", service: made(onPorts(80)), byHand: func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) {
				delete(svc.Labels, driver.LabelLoadBalancerID)
				svc.Labels[driver.LabelLoadBalancerID] = w.onlyCLB()
			})
		}},
	}
}

func protocolKinds() []kind {
	kinds := []kind{}
	for _, declared := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		for _, protocol := range []string{"tcp", "udp", "http", "https"} {
			kinds = append(kinds,
				kind{name: protocol + " for a port declared " + string(declared), service: made(onPorts(), func(svc *corev1.Service) {
					svc.Spec.Ports = []corev1.ServicePort{testPort(80, declared), testPort(90, corev1.ProtocolTCP)}
				}, annotated(annotation.ProtocolPort, protocol+":80", annotation.CertID, testCertificate))})
		}
	}
	return append(kinds,
		kind{name: "mixed protocols", service: made(onPorts(53, 443), func(svc *corev1.Service) {
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(80, corev1.ProtocolUDP), testPort(22, corev1.ProtocolUDP))
		}, annotated(annotation.ProtocolPort, "udp:53,http:80,https:443,tcp:22", annotation.CertID, testCertificate))},
		kind{name: "a protocol named twice", service: made(onPorts(80), annotated(annotation.ProtocolPort, "http:80,tcp:80"))},
		kind{name: "a protocol of another port", service: made(onPorts(80), annotated(annotation.ProtocolPort, "http:81"))},
		kind{name: "a redirect", service: made(fourProtocols, annotated(annotation.ForwardPort, "80:443"))},
		kind{name: "a redirect with settings",
			service: made(fourProtocols, annotated(annotation.ForwardPort, "80:443", annotation.Scheduler, "wlc", annotation.IdleTimeout, "20",
				annotation.HealthCheckFlag, "on", annotation.HealthCheckURI, "/healthz"))},
		kind{name: "a redirect of a port declared UDP",
			service: made(fourProtocols, func(svc *corev1.Service) { svc.Spec.Ports[0] = testPort(80, corev1.ProtocolUDP) },
				annotated(annotation.ForwardPort, "80:443"))},
		kind{name: "two redirects",
			service: made(fourProtocols, func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP)) },
				annotated(annotation.ProtocolPort, "http:80,https:443,tcp:22,udp:53,http:81", annotation.ForwardPort, "80:443,81:443"))},
		kind{name: "a redirect of no http port", service: made(fourProtocols, annotated(annotation.ForwardPort, "22:443"))},
	)
}

func podKinds() []kind {
	named := func(svc *corev1.Service) { svc.Spec.Ports[0].TargetPort = intstr.FromString("web") }
	return []kind{
		{name: "pods", service: made(webService, eni)},
		{name: "pods with UDP", service: made(webService, eni, annotated(annotation.ProtocolPort, "udp:80"))},
		{name: "pods with four protocols", service: made(fourProtocols, eni)},
		{name: "pods, Local", service: made(webService, eni, isLocal)},
		{name: "pods with a named port", service: made(webService, eni, named)},
		{name: "pods of one port for two",
			service: made(onPorts(80, 81), eni, func(svc *corev1.Service) { svc.Spec.Ports[1].TargetPort = svc.Spec.Ports[0].TargetPort })},
		{name: "pods with a weight", service: made(webService, eni, annotated(annotation.DefaultWeight, "60"))},
		{name: "pods with a redirect", service: made(fourProtocols, eni, annotated(annotation.ForwardPort, "80:443"))},
		{name: "pods without node ports", service: made(onPorts(80, 81), eni, func(svc *corev1.Service) {
			svc.Spec.AllocateLoadBalancerNodePorts = new(false)
			svc.Spec.Ports[0].NodePort, svc.Spec.Ports[1].NodePort = 0, 0
		})},
		{name: "named port of nodes", service: made(webService, named)},
		{name: "pods on a virtual node", service: func(w *world) *corev1.Service {
			w.addNode("b", labeled("type", "virtual-kubelet"))
			return webService()
		}},
		{name: "pods on a virtual node, Local", service: func(w *world) *corev1.Service {
			w.addNode("b", labeled("type", "virtual-kubelet"))
			return made(webService, isLocal)(w)
		}},
	}
}

// ofItsOwn are annotations that have kinds of their own, or that hand the Service to somebody else.
var ofItsOwn = sets.New(annotation.LoadBalancerID, annotation.ForceOverrideListeners, annotation.VGroupPort, annotation.Weight,
	annotation.Type, annotation.TunnelType,
	annotation.BackendIPVersion, annotation.ProtocolPort)

// unknownToOfficial are annotations that no Service of the official CCM has: with them, another load balancer may be wanted.
var unknownToOfficial = sets.New(annotation.BackendSubset, annotation.Group, annotation.GroupOverflow, annotation.HealthCheck, annotation.Move, annotation.MoveGrace)

// annotatedKinds are one kind per annotation and example of the reference page, with what the annotation needs, and one per annotation
// with the older prefix.
func annotatedKinds() []kind {
	kinds := []kind{}
	for _, row := range annotation.Table() {
		for i, value := range []string{firstOf(row), explanations[row.Suffix].Other} {
			if value == "" || ofItsOwn.Has(row.Suffix) || unknownToOfficial.Has(row.Suffix) {
				continue
			}
			needs := explanations[row.Suffix].With
			kinds = append(kinds, kind{name: fmt.Sprintf("%s: %s", string(row.Suffix), value), service: func(w *world) *corev1.Service {
				w.addNode("a", labeled("pool", "web"))
				w.addNode("b", labeled("pool", "shop"))
				svc := testService("web", 80, 443)
				for suffix, needed := range needs {
					annotate(svc, suffix, needed)
				}
				annotate(svc, row.Suffix, value)
				inThisCloud(svc)
				if i == 0 {
					olderPrefix(svc)
				}
				return svc
			}, stays: row.Suffix == annotation.PreserveOnDelete})
		}
	}
	return kinds
}

// inThisCloud makes the examples of the reference page fit the emulator's network and its rules for public CLBs.
func inThisCloud(svc *corev1.Service) {
	if _, ok := svc.Annotations[key(annotation.VSwitchID)]; ok {
		annotate(svc, annotation.VSwitchID, "vsw-a")
	}
	if svc.Annotations[key(annotation.ChargeType)] != "" {
		isPublic(svc)
		annotate(svc, annotation.InstanceChargeType, "PayBySpec")
	}
}

// olderPrefix writes the annotations with the older of the two prefixes.
func olderPrefix(svc *corev1.Service) {
	for name, value := range maps.Clone(svc.Annotations) {
		if suffix, ok := strings.CutPrefix(name, annotation.Prefixes[0]); ok {
			delete(svc.Annotations, name)
			svc.Annotations[annotation.Prefixes[1]+suffix] = value
		}
	}
}

func instanceKinds() []kind {
	tags := func(n int) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf("tag-%d=%d", i, i))
		}
		return strings.Join(items, ",")
	}
	bySpec := annotated(annotation.InstanceChargeType, "PayBySpec", annotation.Spec, "slb.s2.small")
	byBandwidth := annotated(annotation.AddressType, "internet", annotation.ChargeType, "paybybandwidth", annotation.InstanceChargeType,
		"PayBySpec")
	return []kind{
		{name: "PayBySpec", service: made(onPorts(80), bySpec)},
		{name: "PayBySpec without specification", service: made(onPorts(80), annotated(annotation.InstanceChargeType, "PayBySpec"))},
		{name: "PayBySpec by an annotation that is gone", service: made(onPorts(80), bySpec), byHand: func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.InstanceChargeType)) })
		}},
		{name: "paybybandwidth", service: made(onPorts(80), byBandwidth)},
		{name: "paybybandwidth with a value", service: made(onPorts(80), byBandwidth, annotated(annotation.Bandwidth, "45"))},
		{name: "paybybandwidth raised by hand", service: made(onPorts(80), byBandwidth), byHand: func(w *world, id string) {
			w.raw(api.VersionSLB, "ModifyLoadBalancerInternetSpec",
				map[string]string{"LoadBalancerId": id, "InternetChargeType": "paybybandwidth", "Bandwidth": "200"}, nil)
		}},
		{name: "IPv6", service: made(webService, isPublic, annotated(annotation.IPVersion, "ipv6"))},
		{name: "settings changed by hand that no annotation manages", service: made(fourProtocols), byHand: func(w *world, id string) {
			w.raw(api.VersionSLB, "SetLoadBalancerDeleteProtection", map[string]string{"LoadBalancerId": id, "DeleteProtection": "off"}, nil)
			w.raw(api.VersionSLB, "SetLoadBalancerTCPListenerAttribute",
				map[string]string{"LoadBalancerId": id, "ListenerPort": "22", "Scheduler": "wlc", "HealthyThreshold": "5"}, nil)
			w.raw(api.VersionSLB, "TagResources",
				map[string]string{"ResourceType": "instance", "ResourceId.1": id, "Tag.1.Key": "team", "Tag.1.Value": "web"}, nil)
		}},
		{name: "20 tags", service: made(onPorts(80), annotated(annotation.AdditionalTags, tags(18)))},
		{name: "16 tags", service: made(onPorts(80), annotated(annotation.AdditionalTags, tags(16)))},
		{name: "a tag with two equals signs", service: made(onPorts(80), annotated(annotation.AdditionalTags, "a=b=c,d="))},
		{name: "empty values",
			service: made(fourProtocols,
				annotated(annotation.Bandwidth, "", annotation.Scheduler, "", annotation.Name, "", annotation.LoadBalancerID, "",
					annotation.ACLStatus, "", annotation.AdditionalTags, ""))},
		{name: "an empty value before one with the older prefix",
			service: made(onPorts(80), annotated(annotation.Scheduler, ""), func(svc *corev1.Service) {
				svc.Annotations[annotation.Prefixes[1]+string(annotation.Scheduler)] = "wlc"
			})},
		{name: "two prefixes", service: made(onPorts(80), annotated(annotation.Scheduler, "wrr"), func(svc *corev1.Service) {
			svc.Annotations[annotation.Prefixes[1]+string(annotation.Scheduler)] = "wlc"
		})},
		{name: "a host name shown", service: made(onPorts(80), annotated(annotation.Hostname, "web.example.com")),
			byHand: func(w *world, _ string) {
				w.show(corev1.LoadBalancerIngress{Hostname: "web.example.com"})
			}},
		{name: "elastic addresses shown", service: made(onPorts(80), annotated(annotation.ExternalIPType, "eip")),
			byHand: func(w *world, id string) {
				w.show(corev1.LoadBalancerIngress{IP: w.bindEIP(id)})
			}},
	}
}

// show sets the addresses that the Service shows.
func (w *world) show(ingress ...corev1.LoadBalancerIngress) {
	w.t.Helper()
	w.change("web", func(svc *corev1.Service) { svc.Status.LoadBalancer.Ingress = ingress })
}

func listenerKinds() []kind {
	kinds := []kind{
		{name: "several access control lists",
			service: made(fourProtocols, annotated(annotation.ACLStatus, "on", annotation.ACLType, "white", annotation.ACLID, testACL+",acl-2"))},
		{name: "several access control lists in another order",
			service: made(fourProtocols, annotated(annotation.ACLStatus, "on", annotation.ACLType, "black", annotation.ACLID, "acl-2,"+testACL))},
		{name: "an access control list switched off",
			service: made(fourProtocols, annotated(annotation.ACLStatus, "off", annotation.ACLType, "white", annotation.ACLID, testACL))},
		{name: "every setting", service: made(everySetting)},
		{name: "a cookie with a hyphen",
			service: made(fourProtocols,
				annotated(annotation.StickySession, "on", annotation.StickySessionType, "server", annotation.Cookie, "route-id"))},
		{name: "domains", service: made(func() *corev1.Service { return secured("a.example.com:cert-1,*.example.org:cert-2") })},
		{name: "checks by HTTP of TCP",
			service: made(fourProtocols,
				annotated(annotation.HealthCheckType, "http", annotation.HealthCheckURI, "/healthz", annotation.HealthCheckDomain, "web.example.com",
					annotation.HealthCheckHTTPCode, "http_2xx,http_3xx"))},
		{name: "parts of a check by HTTP, and no check by HTTP",
			service: made(fourProtocols, annotated(annotation.HealthCheckURI, "/healthz", annotation.HealthCheckHTTPCode, "http_3xx,http_2xx"))},
		{name: "drain without its switch", service: made(fourProtocols, annotated(annotation.ConnectionDrainTimeout, "30"))},
		{name: "values that only the cloud accepts",
			service: made(fourProtocols,
				annotated(annotation.HealthyThreshold, "04", annotation.ConnectionDrain, "on", annotation.ConnectionDrainTimeout, "30"))},
	}
	for _, policy := range []string{"tls_cipher_policy_1_0", "tls_cipher_policy_1_1", "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict",
		"tls_cipher_policy_1_2_strict_with_1_3"} {
		kinds = append(kinds, kind{name: policy, service: made(fourProtocols, annotated(annotation.TLSCipherPolicy, policy))})
	}
	return kinds
}

// everySetting has every setting of listeners.
func everySetting() *corev1.Service {
	svc := fourProtocols()
	for _, row := range annotation.ListenerTable() {
		if row.Attribute == "" {
			continue
		}
		annotate(svc, row.Suffix, firstOf(row))
		for suffix, needed := range explanations[row.Suffix].With {
			if suffix != annotation.ProtocolPort {
				annotate(svc, suffix, needed)
			}
		}
	}
	annotate(svc, annotation.Cookie, "route-id")
	return svc
}

// nodeKinds differ in what the nodes are.
func nodeKinds() []kind {
	on := func(change func(*corev1.Node), changes ...func(*corev1.Service)) func(*world) *corev1.Service {
		return func(w *world) *corev1.Service {
			w.addNode("c", change)
			return made(webService, changes...)(w)
		}
	}
	kinds := []kind{
		{name: "an autoscaler's taint", service: on(taintedBy("ToBeDeletedByClusterAutoscaler"))},
		{name: "a cordoned node", service: on(testkube.Cordoned)},
		{name: "a cordoned node that leaves", service: on(testkube.Cordoned, annotated(annotation.RemoveUnscheduledBackend, "on"))},
		{name: "a node that is not ready", service: on(notReady)},
		{name: "labels of backends", service: on(labeled("pool", "web"), annotated(annotation.BackendLabel, "pool=web"))},
		{name: "weights changed by hand", service: made(webService, annotated(annotation.IgnoreWeightUpdate, "on")),
			byHand: func(w *world, id string) {
				groups, err := w.api.DescribeVServerGroups(w.t.Context(), id)
				if err != nil {
					w.t.Fatal(err)
				}
				for _, group := range groups {
					full, err := w.api.DescribeVServerGroup(w.t.Context(), group.ID)
					if err != nil {
						w.t.Fatal(err)
					}
					full.Backends[0].Weight = 3
					if err := w.api.SetBackends(w.t.Context(), group.ID, full.Backends); err != nil {
						w.t.Fatal(err)
					}
				}
			}},
	}
	for _, label := range []string{
		"node-role.kubernetes.io/master", "node.kubernetes.io/exclude-from-external-load-balancers",
		"alpha.service-controller.kubernetes.io/exclude-balancer",
		"service.alibabacloud.com/exclude-node", "service.beta.kubernetes.io/exclude-node",
	} {
		kinds = append(kinds, kind{name: label, service: on(labeled(label, ""))},
			kind{name: label + ", Local", service: on(labeled(label, ""), isLocal)})
	}
	return kinds
}

func reuseKinds() []kind {
	on := func(override string, change ...func(*world, *corev1.Service)) func(*world) *corev1.Service {
		return func(w *world) *corev1.Service {
			id := w.makeCLB(alicloud.Tag{Key: "mine", Value: "1"}).ID
			w.makeListener(id, 9000, "by hand")
			svc := reusing("web", id, override, 80, 81)
			for _, f := range change {
				f(w, svc)
			}
			return svc
		}
	}
	set := func(changes ...func(*corev1.Service)) func(*world, *corev1.Service) {
		return func(_ *world, svc *corev1.Service) {
			for _, f := range changes {
				f(svc)
			}
		}
	}
	joins := func(description string) func(*world, *corev1.Service) {
		return func(w *world, svc *corev1.Service) {
			annotate(svc, annotation.VGroupPort, w.makeGroup(w.onlyCLB(), "shared", description)+":80")
		}
	}
	kinds := []kind{
		{name: "a user's CLB", service: on("true")},
		{name: "a user's CLB, Local", service: on("true", set(isLocal))},
		{name: "a user's CLB, pods", service: on("true", set(eni))},
		{name: "a user's CLB with its own listeners", service: on("false")},
		{name: "a user's CLB without a word on listeners",
			service: on("true", set(func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.ForceOverrideListeners)) }))},
		{name: "a user's CLB with an override that is none", service: on("True")},
		{name: "a user's CLB, by its address", service: on("true"), byHand: func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { delete(svc.Labels, driver.LabelLoadBalancerID) })
		}},
		{name: "a user's CLB with settings, tags and domains", service: func(w *world) *corev1.Service {
			svc := onExistingCLB(w, "a.example.com:cert-1", "a=1")
			annotate(svc, annotation.HealthyThreshold, "4")
			return svc
		}},
		{name: "a user's CLB with attributes", service: on("true", func(w *world, svc *corev1.Service) {
			w.must(w.api.SetDeleteProtection(w.t.Context(), w.onlyCLB(), "on"))
			annotated(annotation.DeleteProtection, "on", annotation.ModificationProtection, "NonProtection")(svc)
		})},
		{name: "a group that clusters share", service: on("true", joins("k8s/30080/web/default/c9"))},
		{name: "a CLB on which another cluster has a Service of the name", service: on("true", func(w *world, _ *corev1.Service) {
			w.makeListener(w.onlyCLB(), 70, "k8s/70/web/default/c9")
		})},
		{name: "a port that another Service has, too", fights: true, stays: true, service: on("true"), byHand: func(w *world, id string) {
			theirs, err := w.api.CreateVServerGroup(w.t.Context(), id, "k8s/31081/shop/default/"+testCluster, nil)
			w.must(err)
			w.must(w.api.SetListener(w.t.Context(), id, alicloud.Listener{
				ListenerKey: alicloud.ListenerKey{Port: 81, Protocol: "tcp"}, Description: "k8s/81/shop/default/" + testCluster, VServerGroupID: theirs,
			}))
		}},
	}
	for _, weight := range []string{"", "0", "1", "20", "100"} {
		for _, mode := range []struct {
			name   string
			change func(*corev1.Service)
		}{{"Cluster", func(*corev1.Service) {}}, {"Local", isLocal}, {"pods", eni}} {
			kinds = append(kinds, kind{name: fmt.Sprintf("a share %q of a group of others, %s", weight, mode.name),
				service: on("true", joins("by hand"), set(mode.change, annotated(annotation.Weight, weight)))})
		}
	}
	return kinds
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
