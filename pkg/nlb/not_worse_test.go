package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Tests in this file: what the cloud refuses, or what nobody knows, makes nothing worse than it was, and holds back nothing else.

// nodePort moves the first port of a Service to another node port.
func nodePort(number int32) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = number }
}

// wantListeners checks the listeners of the NLB of the Service web.
func (w *world) wantListeners(what string, want ...string) {
	w.t.Helper()
	if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, want) {
		w.t.Errorf("%s: listeners %v, want %v", what, got, want)
	}
}

// TestRefusedReplacementKeepsTheServers: the label of the backends moves to nodes that the cloud refuses. Those that served go on to do so,
// until the others are taken.
func TestRefusedReplacementKeepsTheServers(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"not in the VPC": "IllegalParam.Servers",
		"as many groups as it may have": "QuotaExceeded.ServerGroupsPerServer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("blue", "green")
				for _, color := range []string{"blue", "green"} {
					node := testkube.Node(color, testkube.NodeLabel("color", color))
					testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(node))
				}
				w.put(newService("web", testkube.TCP(80), with(annotation.BackendLabel, "color=blue")))
				w.converge("web")
				w.account.Fault(`{"action":"AddServersToServerGroup","times":0,"status":400,"code":"` + code + `"}`)
				w.change("web", with(annotation.BackendLabel, "color=green"))
				w.passes("web", time.Hour)
				w.wantListeners("refused", "TCP:80 i-blue:30080=100")
				w.account.ClearFaults()
				w.passes("web", 2*time.Hour)
				w.wantListeners("taken", "TCP:80 i-green:30080=100")
			})
		})
	}
}

// TestRefusedProtocolServesOn: a port is to have another protocol, and the cloud refuses its listener. The one before serves until it does
// not.
func TestRefusedProtocolServesOn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443))
		w.change("web", with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-none"))
		w.passes("web", 30*time.Minute)
		w.wantListeners("refused", "TCP:443 i-n1:30443=100")
		mustReport(t, w.newEvents(), "ResourceNotFound.Certificate")
		w.addNodes("n2")
		w.passes("web", time.Minute)
		w.wantListeners("refused, with another node", "TCP:443 i-n1:30443=100 i-n2:30443=100")
		w.calls()
		w.passes("web", 24*time.Hour)
		if got := writes(w.calls()); len(got) > 100 {
			t.Errorf("%d writes in a day: %v", len(got), got[:20])
		}
		w.wantListeners("a day later", "TCP:443 i-n1:30443=100 i-n2:30443=100")
		w.change("web", with(annotation.CertID, "cert-1"))
		w.converge("web")
		w.wantListeners("another certificate", "TCPSSL:443 i-n1:30443=100 i-n2:30443=100")
		w.quiet("web")
		if got := len(w.groups("web")); got != 1 {
			t.Errorf("%d groups, want 1", got)
		}
	})
}

// TestFailedProtocolServesOn: the cloud takes the listener of the other protocol, and its job fails.
func TestFailedProtocolServesOn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443))
		w.account.Fault(`{"action":"CreateListener","times":3,"job":"failed"}`)
		w.change("web", with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
		w.passes("web", 20*time.Second)
		w.wantListeners("failed twice", "TCP:443 i-n1:30443=100")
		w.passes("web", 2*time.Hour)
		w.wantListeners("later", "TCPSSL:443 i-n1:30443=100")
	})
}

// TestThrottledProtocolServesOn: the rate of creations is used up, for example because all Services get their listeners at once. The
// listener of the other protocol stays until it is not.
func TestThrottledProtocolServesOn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(443))
		w.account.Fault(`{"action":"CreateListener","times":2,"code":"Throttling.User","status":400}`)
		w.change("web", with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
		id, down, done := w.balancer("web").ID, time.Duration(0), make(chan struct{})
		go func() {
			defer close(done)
			for range 600 {
				if time.Sleep(time.Second); len(testkit.Must(w.account.Client.ListNLBListeners(t.Context(), []string{id}))(t)) == 0 {
					down += time.Second
				}
			}
		}()
		w.passes("web", 10*time.Minute)
		<-done
		if down > 5*time.Second {
			t.Errorf("nothing served the port for %s", down)
		}
		w.wantListeners("in the end", "TCPSSL:443 i-n1:30443=100")
	})
}

// TestRefusedSettingKeepsNoListener: the cloud does not take a setting of a listener, or an annotation of it is not accepted and the
// process is new. The listener follows its port to another node port, and takes another certificate, all the same.
func TestRefusedSettingKeepsNoListener(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"the cloud refuses it": with(annotation.TLSCipherPolicy, "tls-none"), "it is not accepted": with(annotation.Cps, "many"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
				w.change("web", change)
				w.passes("web", 5*time.Minute)
				w.restart()
				w.change("web", nodePort(31000))
				w.passes("web", 5*time.Minute)
				w.wantListeners("another node port", "TCPSSL:443 i-n1:31000=100")
				w.change("web", with(annotation.CertID, "cert-2"))
				w.passes("web", 5*time.Minute)
				if got := w.listener(w.balancer("web").ID, 0).CertificateIDs; !slices.Equal(got, []string{"cert-2"}) {
					t.Errorf("certificates %v", got)
				}
				w.change("web", with(annotation.CertID, "cert-3"), nodePort(31001))
				w.passes("web", 5*time.Minute)
				w.wantListeners("both", "TCPSSL:443 i-n1:31001=100")
				if got := w.listener(w.balancer("web").ID, 0).CertificateIDs; !slices.Equal(got, []string{"cert-3"}) {
					t.Errorf("certificates %v", got)
				}
			})
		})
	}
}

// TestAnnotationOfServersThatIsNotAccepted: the process is new, so that no value was accepted before. Nodes that are gone leave, and new
// ones join.
func TestAnnotationOfServersThatIsNotAccepted(t *testing.T) {
	t.Parallel()
	for suffix, value := range map[annotation.Suffix]string{
		annotation.DefaultWeight: "heavy", annotation.RemoveUnscheduledBackend: "yes", annotation.IgnoreWeightUpdate: "yes",
		annotation.ServerGroupType: "Nodes",
	} {
		t.Run(string(suffix), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(2, testkube.TCP(80))
				w.change("web", with(suffix, value))
				w.restart()
				w.addNodes("n3")
				w.deleteNode("n1")
				w.passes("web", 10*time.Second)
				w.wantListeners("nodes", "TCP:80 i-n2:30080=100 i-n3:30080=100")
				w.change("web", nodePort(31000))
				w.passes("web", time.Minute)
				w.wantListeners("another node port", "TCP:80 i-n2:31000=100 i-n3:31000=100")
			})
		})
	}
}

// TestListenersOfAnOwnLoadBalancerAreManaged: force-override-listeners has no effect without the id of an existing NLB, whatever its value.
func TestListenersOfAnOwnLoadBalancerAreManaged(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.ForceOverrideListeners, "yes"))
		w.wantListeners("new", "TCP:80 i-n1:30080=100")
	})
}

// TestEditedClusterTag: somebody edits the tag of the cluster id on an NLB of ours. Its listeners carry the id, so the Service goes on, and
// the tag is as it was.
func TestEditedClusterTag(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*world){"drift": (*world).drift, "restart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80))
				id := w.balancer("web").ID
				testkit.Check(t,
					w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id},
						[]alicloud.Tag{{Key: mark.TagCluster, Value: "another"}}))
				w.newEvents()
				between(w)
				w.converge("web")
				w.change("web", nodePort(31000))
				w.converge("web")
				w.wantListeners("another node port", "TCP:80 i-n1:31000=100")
				if got := w.tags(id)[mark.TagCluster]; got != testCluster {
					t.Errorf("the tag is %q", got)
				}
				for _, event := range w.newEvents() {
					if strings.Contains(event, "ListenerConflict") {
						t.Errorf("event %s", event)
					}
				}
				if got := len(w.groups("web")); got != 1 {
					t.Errorf("%d groups, want 1", got)
				}
			})
		})
	}
}

// TestUnreadCertificatesHoldBackNothing: the additional certificates of a listener cannot be read. Nodes are followed all the same, and
// once they can, those that are missing come.
func TestUnreadCertificatesHoldBackNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
			with(annotation.AdditionalCertIDs, "cert-2"))
		w.account.Fault(`{"action":"ListListenerCertificates","times":0,"code":"Forbidden.RAM","status":403}`)
		w.restart()
		w.deleteNode("n1")
		w.addNodes("n3")
		w.passes("web", 10*time.Second)
		w.wantListeners("nodes", "TCPSSL:443 i-n2:30443=100 i-n3:30443=100")
		w.change("web", with(annotation.CertID, "cert-3"), with(annotation.AdditionalCertIDs, "cert-1,cert-2"))
		w.calls()
		w.passes("web", 10*time.Minute)
		if got := w.listener(w.balancer("web").ID, 0).CertificateIDs; !slices.Equal(got, []string{"cert-3"}) {
			t.Errorf("certificates %v", got)
		}
		if got := writes(w.calls()); slices.Contains(got, "AssociateAdditionalCertificatesWithListener") {
			t.Errorf("writes %v", got)
		}
		mustReport(t, w.newEvents(), "ListListenerCertificates")
		w.account.ClearFaults()
		w.passes("web", 10*time.Minute)
		got := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), w.listener(w.balancer("web").ID, 0).ID))(t)
		if slices.Sort(got); !slices.Equal(got, []string{"cert-1", "cert-2"}) {
			t.Errorf("additional certificates %v", got)
		}
	})
}
