package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// operation is a change whose every write may go wrong.
type operation struct {
	name    string
	prepare func(*world)
	act     func(*world)
}

// operations are those of which [TestEveryWriteActionMayGoWrong] asks that they make every call that writes.
func operations() []operation {
	return slices.Concat(everyday(), removals(), reuses(), restrictions(), attributeChanges(), certificateChanges(), groupChanges())
}

func webService() *corev1.Service {
	svc := testService("web", 80)
	svc.Spec.Ports = append(svc.Spec.Ports, testPort(53, corev1.ProtocolUDP))
	return svc
}

// standing makes a world in which the Service stands.
func standing(svc func() *corev1.Service) func(*world) {
	return func(w *world) {
		threeNodes(w)
		w.put(svc())
		w.converge("web")
	}
}

// changing changes the Service.
func changing(f func(*corev1.Service)) func(*world) {
	return func(w *world) { w.change("web", f) }
}

func with(svc func() *corev1.Service, suffix annotation.Suffix, value string) func() *corev1.Service {
	return func() *corev1.Service {
		made := svc()
		annotate(made, suffix, value)
		return made
	}
}

func everyday() []operation {
	return []operation{
		{"create", threeNodes, func(w *world) { w.put(webService()) }},
		{"create with four protocols", threeNodes, func(w *world) { w.put(fourProtocols()) }},
		{"update", standing(webService), func(w *world) {
			w.deleteNode("c")
			w.addNode("d")
			w.addNode("e")
			w.change("web", func(svc *corev1.Service) {
				svc.Spec.Ports = []corev1.ServicePort{svc.Spec.Ports[0], testPort(443, corev1.ProtocolTCP)}
				annotate(svc, annotation.Scheduler, "wrr")
				annotate(svc, annotation.Name, "renamed")
				annotate(svc, annotation.AdditionalTags, "team=a")
				annotate(svc, annotation.DeleteProtection, "off")
			})
		}},
		{"four protocols updated", standing(fourProtocols), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.Scheduler, "wrr")
			annotate(svc, annotation.HealthyThreshold, "9")
		})},
		{"http becomes https", standing(with(fourProtocols, annotation.ProtocolPort, "http:80,http:443,tcp:22,udp:53")),
			changing(func(svc *corev1.Service) {
				annotate(svc, annotation.ProtocolPort, "http:80,https:443,tcp:22,udp:53")
			})},
		{"weights", standing(webService), changing(func(svc *corev1.Service) { annotate(svc, annotation.DefaultWeight, "7") })},
		{"nodes leave", standing(webService), func(w *world) { w.deleteNode("a"); w.deleteNode("b") }},
		{"pods replaced", func(w *world) {
			threeNodes(w)
			svc := testService("web", 80)
			eni(svc)
			w.podsAt(svc, "a", "b")
			w.put(svc)
			w.converge("web")
		}, func(w *world) { w.podsAt(w.get("web"), "b", "c") }},
		{"listener stopped by hand", func(w *world) {
			standing(webService)(w)
			w.raw(api.VersionSLB, "StopLoadBalancerListener", map[string]string{
				"LoadBalancerId": w.onlyCLB(), "ListenerPort": "80", "ListenerProtocol": "tcp",
			}, nil)
		}, func(w *world) { w.drift("web") }},
		{"CLB deleted by hand", func(w *world) {
			standing(webService)(w)
			w.removeCLB()
		}, func(w *world) { w.drift("web") }},
	}
}

// podsAt has the endpoints of the Service at the addresses of instances.
func (w *world) podsAt(svc *corev1.Service, nodes ...string) {
	w.t.Helper()
	var items []string
	for _, node := range nodes {
		items = append(items, w.addressOf("i-"+node)+"@"+node)
	}
	slice := testSlice(svc.Spec.Ports[0], items...)
	slice.Name = "web-1"
	w.putSlice(slice)
}

func fourProtocols() *corev1.Service {
	svc := testService("web", 80, 443, 22)
	svc.Spec.Ports = append(svc.Spec.Ports, testPort(53, corev1.ProtocolUDP))
	annotate(svc, annotation.ProtocolPort, "http:80,https:443,tcp:22,udp:53")
	annotate(svc, annotation.CertID, testCertificate)
	return svc
}

func removals() []operation {
	return []operation{
		{"delete", standing(webService), changing(deleteService)},
		{"preserved", standing(with(webService, annotation.PreserveOnDelete, "true")), changing(deleteService)},
		{"type change", standing(webService), changing(func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })},
		{"class change", standing(webService), changing(func(svc *corev1.Service) {
			other := "example.com/other"
			svc.Spec.LoadBalancerClass = &other
		})},
		{"restricted Service deleted", standing(func() *corev1.Service { return restricted("192.0.2.0/24") }), changing(deleteService)},
	}
}

func reuses() []operation {
	return []operation{
		{"reuse", func(w *world) { threeNodes(w); w.makeCLB() }, func(w *world) { w.put(reusing("web", w.onlyCLB(), "true", 80, 81)) }},
		{"end of reuse", func(w *world) {
			threeNodes(w)
			w.put(reusing("web", w.makeCLB().ID, "true", 80, 81))
			w.converge("web")
		}, changing(deleteService)},
		{"moved to an existing CLB", func(w *world) {
			standing(with(webService, annotation.Move, annotation.MoveAllow))(w)
			w.makeCLB()
		}, func(w *world) {
			w.change("web", func(svc *corev1.Service) {
				annotate(svc, annotation.LoadBalancerID, w.balancer("mine").ID)
				annotate(svc, annotation.ForceOverrideListeners, "true")
			})
		}},
		{"moved from an existing CLB", func(w *world) {
			threeNodes(w)
			svc := reusing("web", w.makeCLB().ID, "true", 80, 81)
			annotate(svc, annotation.Move, annotation.MoveAllow)
			w.put(svc)
			w.converge("web")
		}, changing(func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.LoadBalancerID))
			delete(svc.Annotations, key(annotation.ForceOverrideListeners))
		})},
		{"reuse with tags and domains", func(w *world) { threeNodes(w); w.makeCLB() }, func(w *world) {
			w.put(onExisting("web", w.onlyCLB(), "a.example.com:cert-1", "a=1"))
		}},
		{"tags and domains of a reused CLB changed", withExtensionsAndTags, changing(func(svc *corev1.Service) {
			annotate(svc, annotation.DomainExtensions, "b.example.com:cert-1")
			annotate(svc, annotation.AdditionalTags, "b=1")
		})},
		{"tags and domains of a reused CLB removed", withExtensionsAndTags, changing(func(svc *corev1.Service) {
			setOrDelete(svc, annotation.DomainExtensions, "")
			setOrDelete(svc, annotation.AdditionalTags, "")
		})},
		{"end of reuse with tags and domains", withExtensionsAndTags, changing(deleteService)},
		{"group of others joined", func(w *world) {
			threeNodes(w)
			w.makeGroup(w.makeCLB().ID, "shared", "9.9.9.9")
		}, func(w *world) { w.put(joining("web", w.onlyCLB(), w.groupID("shared")+":80", 80, 81)) }},
		{"group of others left for another", func(w *world) {
			threeNodes(w)
			id := w.makeCLB().ID
			w.makeGroup(id, "shared", "9.9.9.9")
			w.makeGroup(id, "other", "9.9.9.8")
			w.put(joining("web", id, w.groupID("shared")+":80", 80))
			w.converge("web")
		}, func(w *world) {
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.VGroupPort, w.groupID("other")+":80") })
		}},
		{"group of others left for good", func(w *world) {
			threeNodes(w)
			id := w.makeCLB().ID
			w.makeGroup(id, "shared", "9.9.9.9")
			w.put(joining("web", id, w.groupID("shared")+":80", 80))
			w.converge("web")
		}, changing(deleteService)},
	}
}

// withExtensionsAndTags makes a world in which a Service has tags and domain extensions on an existing CLB.
func withExtensionsAndTags(w *world) {
	threeNodes(w)
	w.put(onExistingCLB(w, "a.example.com:cert-1", "a=1"))
	w.converge("web")
}

func restrictions() []operation {
	closed := func() *corev1.Service { return restricted("192.0.2.0/24") }
	ranges := func(blocks ...string) func(*world) {
		return changing(func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = blocks })
	}
	return []operation{
		{"source ranges from the start", threeNodes, func(w *world) { w.put(closed()) }},
		{"source ranges changed", standing(closed), ranges("198.51.100.0/24")},
		{"source ranges added", standing(webService), ranges("198.51.100.0/24")},
		{"source ranges removed", standing(closed), ranges()},
	}
}

func attributeChanges() []operation {
	public := func() *corev1.Service {
		svc := webService()
		annotate(svc, annotation.AddressType, "internet")
		annotate(svc, annotation.InstanceChargeType, "PayBySpec")
		annotate(svc, annotation.Spec, "slb.s1.small")
		annotate(svc, annotation.ChargeType, "paybybandwidth")
		annotate(svc, annotation.Bandwidth, "5")
		return svc
	}
	return []operation{
		{"fewer tags", standing(with(webService, annotation.AdditionalTags, "a=1,b=2")), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.AdditionalTags, "a=2")
		})},
		{"annotations removed",
			standing(with(with(with(webService, annotation.Scheduler, "wlc"), annotation.HealthyThreshold, "9"), annotation.DeleteProtection,
				"off")), changing(func(svc *corev1.Service) {
				for _, suffix := range []annotation.Suffix{annotation.Scheduler, annotation.HealthyThreshold, annotation.DeleteProtection} {
					delete(svc.Annotations, key(suffix))
				}
			})},
		{"charges", standing(public), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.Spec, "slb.s2.small")
			annotate(svc, annotation.ChargeType, "paybytraffic")
		})},
		{"modification protection", standing(webService), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.ModificationProtection, "NonProtection")
		})},
		{"bandwidth", standing(public), changing(func(svc *corev1.Service) { annotate(svc, annotation.Bandwidth, "9") })},
		{"charged by use", standing(with(public, annotation.ChargeType, "paybytraffic")), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.InstanceChargeType, "PayByCLCU")
			delete(svc.Annotations, key(annotation.Spec))
		})},
	}
}

// inGroup is a Service of a group.
func inGroup() *corev1.Service {
	svc := webService()
	annotate(svc, annotation.Group, "edge")
	return svc
}

// beside makes a world in which another Service is in the group.
func beside(svc func() *corev1.Service) func(*world) {
	return func(w *world) {
		threeNodes(w)
		w.put(born(grouped("shop", "edge", 81), -1))
		w.converge("shop")
		if svc != nil {
			w.put(born(svc(), 0))
			w.converge("web")
		}
	}
}

func groupChanges() []operation {
	leave := func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) }
	return []operation{
		{"group begun", threeNodes, func(w *world) { w.put(inGroup()) }},
		{"group joined", beside(nil), func(w *world) { w.put(born(inGroup(), 0)) }},
		{"group ended", standing(inGroup), changing(deleteService)},
		{"group left by deletion", beside(inGroup), changing(deleteService)},
		{"group renamed", standing(inGroup), changing(func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })},
		{"group left for another", beside(inGroup), changing(func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })},
		{"moved into a group", beside(webService), changing(func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })},
		{"moved out of a group", beside(inGroup), changing(leave)},
		{"moved out of a group as the last one", standing(inGroup), changing(leave)},
		{"overflow", beside(nil), func(w *world) {
			svc := overflowing(born(inGroup(), 0))
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(81, corev1.ProtocolTCP))
			w.put(svc)
		}},
	}
}

func certificateChanges() []operation {
	made := func(extensions string) func() *corev1.Service {
		return func() *corev1.Service { return secured(extensions) }
	}
	return []operation{
		{"certificate changed", standing(made("")), changing(func(svc *corev1.Service) { annotate(svc, annotation.CertID, "cert-2") })},
		{"domain extensions from the start", threeNodes, func(w *world) { w.put(secured("a.example.com:cert-1,b.example.com:cert-2")) }},
		{"domain extensions changed", standing(made("a.example.com:cert-1,b.example.com:cert-1")), changing(func(svc *corev1.Service) {
			annotate(svc, annotation.DomainExtensions, "b.example.com:cert-2,c.example.com:cert-1")
		})},
		{"domain extensions removed", standing(made("a.example.com:cert-1")), changing(func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.DomainExtensions))
		})},
	}
}
