package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// securityGroups makes some, and returns their ids.
func (w *world) makeSecurityGroups(kind string, names ...string) []string {
	w.t.Helper()
	var ids []string
	for _, name := range names {
		ids = append(ids,
			testkit.Must(w.account.Client.CreateSecurityGroup(w.t.Context(),
				alicloud.SecurityGroup{Name: "group-" + name, VPCID: emulatortest.VPC, Type: kind}, name))(w.t))
	}
	return ids
}

func ranges(blocks ...string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = blocks }
}

// blocks are source ranges that no two others overlap.
func blocks(net, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.%d.%d.0/24", net, i)
	}
	return all
}

// accepted are the source ranges that the security groups of the load balancer accept.
func (w *world) accepted(name string) []string {
	w.t.Helper()
	var accepted []string
	for _, id := range w.balancer(name).SecurityGroups {
		for _, rule := range testkit.Must(w.account.Client.DescribeSecurityGroup(w.t.Context(), id))(w.t).Rules {
			if !rule.Drop {
				accepted = append(accepted, rule.CIDR)
			}
		}
	}
	slices.Sort(accepted)
	return accepted
}

// patiently makes passes for an hour.
func (w *world) patiently(name string) {
	w.t.Helper()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		wait, err := w.Reconcile(w.t.Context(), w.get(name))
		if err != nil {
			wait = 10 * time.Second
		}
		time.Sleep(max(wait, time.Millisecond))
	}
}

// TestReplacedAtAQuota: where a quota has no room for what comes beside what goes, what goes makes room.
func TestReplacedAtAQuota(t *testing.T) {
	t.Parallel()
	tags := func(key string) string {
		var all []string
		for i := range 10 {
			all = append(all, fmt.Sprintf("%s%d=x", key, i))
		}
		return strings.Join(all, ",")
	}
	for name, test := range map[string]struct {
		before, edit func(w *world) func(*corev1.Service)
		check        func(t *testing.T, w *world)
	}{
		"security groups": {
			func(w *world) func(*corev1.Service) {
				return with(annotation.SecurityGroupIDs, strings.Join(w.makeSecurityGroups("normal", "a", "b", "c"), ","))
			},
			func(w *world) func(*corev1.Service) {
				ids, port := w.makeSecurityGroups("normal", "d", "e", "f"), testkube.Port(81, corev1.ProtocolTCP)
				return func(svc *corev1.Service) {
					with(annotation.SecurityGroupIDs, strings.Join(ids, ","))(svc)
					svc.Spec.Ports = append(svc.Spec.Ports, port)
				}
			},
			func(t *testing.T, w *world) {
				t.Helper()
				want := strings.Split(w.get("web").Annotations[annotation.Prefixes[0]+string(annotation.SecurityGroupIDs)], ",")
				if got := slices.Sorted(slices.Values(w.balancer("web").SecurityGroups)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("security groups %v, want %v", got, want)
				}
				if got := w.listeners(w.balancer("web").ID); len(got) != 2 {
					t.Errorf("listeners %v", got)
				}
			},
		},
		"source ranges": {
			func(*world) func(*corev1.Service) { return ranges(blocks(1, 150)...) },
			func(*world) func(*corev1.Service) { return ranges(blocks(2, 150)...) },
			func(t *testing.T, w *world) {
				t.Helper()
				if got, want := w.accepted("web"), slices.Sorted(slices.Values(blocks(2, 150))); !slices.Equal(got, want) {
					t.Errorf("%d ranges are accepted, the first is %s", len(got), got[0])
				}
			},
		},
		"tags": {
			func(*world) func(*corev1.Service) { return with(annotation.AdditionalTags, tags("a")) },
			func(*world) func(*corev1.Service) { return with(annotation.AdditionalTags, tags("b")) },
			func(t *testing.T, w *world) {
				t.Helper()
				if got := strings.Join(w.tagKeys(w.balancer("web").ID), " "); strings.Contains(got, "a0") || !strings.Contains(got, "b9") {
					t.Errorf("tags %s", got)
				}
			},
		},
		"additional certificates": {
			func(*world) func(*corev1.Service) {
				return func(svc *corev1.Service) {
					with(annotation.ProtocolPort, "tcpssl:80")(svc)
					with(annotation.CertID, "cert-1")(svc)
					with(annotation.AdditionalCertIDs, "cert-2")(svc)
				}
			},
			func(*world) func(*corev1.Service) { return with(annotation.AdditionalCertIDs, "cert-3") },
			func(t *testing.T, w *world) {
				t.Helper()
				l := w.listener(w.balancer("web").ID, 0)
				if ids := testkit.Must(w.account.Client.AdditionalCertificates(t.Context(), l.ID))(t); !slices.Equal(ids, []string{"cert-3"}) {
					t.Errorf("additional certificates %v", ids)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), test.before(w))
				w.change("web", test.edit(w))
				if err := w.try("web"); err != nil {
					t.Error(err)
				}
				test.check(t, w)
				w.quiet("web")
			}, quotas(cloud.Limits{CertificatesPerNLB: 1}))
		})
	}
}

// TestNeverWithoutSecurityGroup: to make room, the load balancer leaves one security group after the other.
func TestNeverWithoutSecurityGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80), with(annotation.SecurityGroupIDs, strings.Join(w.makeSecurityGroups("normal", "a", "b", "c", "d"), ",")))
		w.change("web", with(annotation.SecurityGroupIDs, strings.Join(w.makeSecurityGroups("normal", "e", "f", "g", "h"), ",")))
		least := quotaOfGroups
		for range 100 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if least = min(least, len(w.balancer("web").SecurityGroups)); err == nil && wait > soon {
				break
			}
			time.Sleep(max(wait, time.Second))
		}
		if least < quotaOfGroups-1 {
			t.Errorf("there were only %d security groups", least)
		}
		w.quiet("web")
	})
}

// quotaOfGroups is how many security groups a load balancer joins.
const quotaOfGroups = 4

// TestRevocationWaitsForNothing: a source range that is revoked is not accepted any more, whatever the cloud says about new ones, and
// whatever else of the annotations is not accepted.
func TestRevocationWaitsForNothing(t *testing.T) {
	t.Parallel()
	const revoked, new = "198.51.100.0/24", "203.0.113.0/24"
	for name, test := range map[string]struct {
		edit  func(*corev1.Service)
		fault string
	}{
		"new ranges are refused": {ranges(new),
			`{"action":"AuthorizeSecurityGroup","times":1000,"code":"Forbidden.RAM","status":403}`},
		"another annotation is not accepted": {with(annotation.ResourceGroupID, "no such/thing"), ""},
		"the zones are not accepted":         {with(annotation.ZoneMaps, "nowhere"), ""},
		"the version of IP is not accepted":  {with(annotation.IPVersion, "ipv5"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), ranges("192.0.2.0/24", revoked))
				if test.fault != "" {
					w.account.Fault(test.fault)
				}
				rest := []string{"192.0.2.0/24"}
				if test.fault != "" {
					rest = append(rest, new)
				}
				w.change("web", test.edit, ranges(rest...))
				w.restart()
				w.patiently("web")
				if got := w.accepted("web"); !slices.Equal(got, []string{"192.0.2.0/24"}) {
					t.Errorf("accepted %v", got)
				}
			})
		})
	}
}

// TestPreservedWithAllTags: a load balancer that has as many tags as it may have is left to the author all the same, and so is one that
// cannot be tagged.
func TestPreservedWithAllTags(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"no room": "",
		"forbidden": `{"action":"TagResources","times":1000,"code":"Forbidden.RAM","status":403}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80), with(annotation.PreserveOnDelete, "true"))
				id := w.balancer("web").ID
				var tags []alicloud.Tag
				for i := range cloud.MaxTags - len(w.balancer("web").Tags) {
					tags = append(tags, alicloud.Tag{Key: fmt.Sprint("by-hand-", i), Value: "x"})
				}
				testkit.Check(t, w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, tags))
				if fault != "" {
					w.account.Fault(fault)
				}
				w.newEvents()
				w.remove("web")
				if err := w.try("web"); err != nil {
					t.Error(err)
				}
				lb := testkit.Must(w.account.Client.GetNLB(t.Context(), id))(t)
				_, owned := lb.Tag(mark.TagOwner)
				if _, noted := lb.Tag(mark.TagPreserved); owned || noted != (fault == "") || len(w.get("web").Finalizers) > 0 {
					t.Errorf("tags %v, finalizers %v", lb.Tags, w.get("web").Finalizers)
				}
				if fault != "" {
					mustReport(t, w.newEvents(), "LoadBalancerKept")
				}
			})
		})
	}
}
