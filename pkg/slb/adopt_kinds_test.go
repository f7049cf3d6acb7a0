package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// forgetOurs leaves of what the program made only what the official CCM makes, too, see [TestWhatWeMakeHasTheOfficialMarks]: our
// conditions go, and its label comes.
func (w *world) forgetOurs() {
	w.t.Helper()
	w.change("web", func(svc *corev1.Service) {
		svc.Status.Conditions = nil
		svc.Labels[service.LabelHash] = "0"
	})
}

func (w *world) lbs() []alicloud.LoadBalancer {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestAdoptionOfEveryKind: whatever kind of Service the official CCM served, and with whichever cluster id, the first
// pass writes nothing to the cloud; a change then goes into what is there, and the tear-down leaves nothing of the Service.
func TestAdoptionOfEveryKind(t *testing.T) {
	t.Parallel()
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
	made := func(f func() *corev1.Service) func(*world) *corev1.Service {
		return func(*world) *corev1.Service { return f() }
	}
	for _, test := range []struct {
		name    string
		service func(*world) *corev1.Service
		// withoutLabel: controllers of old did not write the label, the status shows the CLB.
		withoutLabel bool
	}{
		{"TCP and UDP", made(webService), false},
		{"four protocols", made(fourProtocols), false},
		{"Local", made(func() *corev1.Service {
			svc := webService()
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			annotate(svc, annotation.Scheduler, "rr") // which the vendor's makes; ours would make wrr
			return svc
		}), false},
		{"pods", made(func() *corev1.Service {
			svc := testService("web", 80)
			eni(svc)
			return svc
		}), false},
		{"protocols that the Service does not declare", made(func() *corev1.Service {
			svc := testService("web", 53, 443)
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(80, corev1.ProtocolUDP), testPort(22, corev1.ProtocolUDP))
			annotate(svc, annotation.ProtocolPort, "udp:53,http:80,https:443,tcp:22")
			annotate(svc, annotation.CertID, testCertificate)
			return svc
		}), false},
		{"a redirect", made(func() *corev1.Service {
			svc := fourProtocols()
			annotate(svc, annotation.ForwardPort, "80:443")
			return svc
		}), false},
		{"pods with UDP", made(func() *corev1.Service {
			svc := webService()
			annotate(svc, annotation.ProtocolPort, "udp:80")
			eni(svc)
			return svc
		}), false},
		{"a CLB that pays by specification", made(func() *corev1.Service {
			svc := testService("web", 80)
			annotate(svc, annotation.InstanceChargeType, model.PayBySpec)
			annotate(svc, annotation.Spec, "slb.s2.small")
			return svc
		}), false},
		{"a public CLB that pays by bandwidth", made(func() *corev1.Service {
			svc := testService("web", 80)
			annotate(svc, annotation.AddressType, "Internet")
			annotate(svc, annotation.ChargeType, "paybybandwidth")
			return svc
		}), false},
		{"IPv6", made(func() *corev1.Service {
			svc := testService("web", 80)
			annotate(svc, annotation.AddressType, "internet")
			annotate(svc, annotation.IPVersion, annotation.FamilyIPv6)
			return svc
		}), false},
		{"several access control lists", made(func() *corev1.Service {
			svc := fourProtocols()
			annotate(svc, annotation.ACLStatus, "on")
			annotate(svc, annotation.ACLType, "white")
			annotate(svc, annotation.ACLID, testACL+",acl-2")
			return svc
		}), false},
		{"every setting of listeners", made(func() *corev1.Service {
			svc := fourProtocols()
			for _, row := range annotation.ListenerTable() {
				if row.Attribute != "" {
					annotate(svc, row.Suffix, firstOf(row))
				}
				for suffix, needed := range explanations[row.Suffix].with {
					if row.Attribute != "" && suffix != annotation.ProtocolPort {
						annotate(svc, suffix, needed)
					}
				}
			}
			annotate(svc, annotation.Cookie, "route-id")
			return svc
		}), false},
		{"a share of a group of others, and a port beside it", on("true", func(w *world, svc *corev1.Service) {
			annotate(svc, annotation.VGroupPort, w.makeGroup(w.onlyCLB(), "shared", "by hand")+":80")
			annotate(svc, annotation.Weight, "20")
		}), false},
		{"settings, tags and domains", made(func() *corev1.Service {
			svc := secured("a.example.com:cert-1")
			annotate(svc, annotation.AdditionalTags, "a=1")
			annotate(svc, annotation.HealthyThreshold, "4")
			annotate(svc, annotation.Name, "shop")
			annotate(svc, annotation.DeleteProtection, "off")
			return svc
		}), false},
		{"a user's CLB", on("true"), false},
		{"a user's CLB, by its address", on("true"), true},
		{"a user's CLB with its own listeners", on("false"), false},
		{"a user's CLB with settings, tags and domains", func(w *world) *corev1.Service {
			svc := guest(w, "a.example.com:cert-1", "a=1")
			annotate(svc, annotation.HealthyThreshold, "4")
			return svc
		}, false},
		{"a group that clusters share", on("true", func(w *world, svc *corev1.Service) {
			annotate(svc, annotation.VGroupPort, w.makeGroup(w.onlyCLB(), "shared", "k8s/30080/web/default/c9")+":80")
		}), false},
		{"a CLB on which another cluster has a Service of the name", on("true", func(w *world, _ *corev1.Service) {
			w.makeListener(w.onlyCLB(), 70, "k8s/70/web/default/c9")
		}), false},
	} {
		for _, clusterID := range []string{testCluster, literalClusterID} {
			t.Run(test.name+", "+clusterID, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.config.ClusterID = clusterID
				w.restart()
				threeNodes(w)
				svc := test.service(w)
				for _, port := range svc.Spec.Ports {
					slice := testSlice(port, w.addressOf("i-a")+"@a", w.addressOf("i-b")+"@b")
					slice.Name = "web-" + port.Name
					w.putSlice(slice)
				}
				before := w.state()
				w.put(svc)
				w.converge("web")
				w.forgetOurs()
				if test.withoutLabel {
					w.change("web", func(svc *corev1.Service) { delete(svc.Labels, service.LabelLoadBalancerID) })
				}
				stood := w.state()

				w.config.ClusterID = testCluster // what is derived where the other had the literal one
				w.restart()
				w.calls()
				w.newEvents()
				w.converge("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("adoption writes %v", writes)
				}
				w.drift("web")
				w.converge("web")
				if diff := cmp.Diff(stood, w.state()); diff != "" || w.get("web").Labels[service.LabelHash] != "0" {
					t.Errorf("hash label %q, state (-before +after):\n%s", w.get("web").Labels[service.LabelHash], diff)
				}

				w.change("web", deleteService)
				w.converge("web")
				after := w.state()
				if lb, ok := after["mine"]; ok {
					delete(lb.Tags, mark.TagReused)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("after the tear-down (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// TestServerOfAnotherClusterOnAnotherPort: two clusters on the same instances have members in one group; each leaves the other's
// alone, and none is written again and again.
func TestServerOfAnotherClusterOnAnotherPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	theirs := alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-a", Port: 31000}, Weight: 7, Description: "k8s/31000/web/default/c9"}
	group, err := w.api.CreateVServerGroup(t.Context(), id, "shared", []alicloud.Backend{theirs})
	if err != nil {
		t.Fatal(err)
	}
	w.put(joining("web", id, group+":80", 80))
	w.converge("web")
	want := []string{"i-a 100", "i-a 7", "i-b 100", "i-c 100"}
	if diff := cmp.Diff(want, short(w.state()["mine"].Groups["shared"])); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	w.restart()
	w.calls()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
	w.change("web", deleteService)
	w.converge("web")
	if diff := cmp.Diff([]string{"i-a 7"}, short(w.state()["mine"].Groups["shared"])); diff != "" {
		t.Errorf("members after the tear-down (-want +got):\n%s", diff)
	}
}
