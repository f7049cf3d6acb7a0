package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

func quotaChecks(report doctor.Report) []doctor.Check {
	return slices.DeleteFunc(slices.Clone(report.Checks), func(c doctor.Check) bool { return c.Area != "quotas" })
}

// createCLBs has somebody else of the account create CLBs.
func (p *patient) createCLBs(t *testing.T, n int) {
	t.Helper()
	cloud := New(p.config, p.env)
	cloud.Configure(p.settings)
	client, err := (&examination{Cloud: cloud}).connect(t.Context())
	testkit.Check(t, err)
	for range n {
		testkit.Must(client.CreateLoadBalancer(t.Context(),
			alicloud.LoadBalancer{AddressType: alicloud.AddressInternet, InstanceChargeType: "PayByCLCU"}, ""))(t)
	}
}

// TestDoctorShowsQuotas: the quota of which the largest share is used stands first, and the one that is used up first when the cluster
// grows has the place to ask for more; the use is that of the whole account. The ports of one Service do not grow with the cluster.
func TestDoctorShowsQuotas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks func(*testing.T, *patient)
		limit  int
		first  quota.Code
		detail string
		center doctor.Status
		empty  bool // nothing is wrong
	}{
		"CLBs first":           {limit: 4, first: quota.CLBs, detail: "3 of 4", center: doctor.OK, empty: true},
		"used up":              {limit: 3, first: quota.CLBs, detail: "3 of 3", center: doctor.OK},
		"ports of one Service": {limit: 60, first: quota.CLBs, detail: "3 of 60", center: doctor.OK, empty: true},
		"ports of a CLB that is shared": {breaks: sharing, limit: 60, first: quota.ListenersPerCLB, detail: "34 of 50", center: doctor.OK,
			empty: true},
		"not counted by the Quota Center": {breaks: flipUsage, limit: 4, first: quota.CLBs, detail: "3 of 4", center: doctor.OK, empty: true},
		"without the permission": {breaks: without("ListProductQuotas"), limit: 4, first: quota.CLBs,
			detail: "3 of 30 CLBs of the account (10 %; value: published for the international site, 60 for the China site)",
			center: doctor.Optional, empty: true},
		"without it, configured": {breaks: configured, limit: 4, first: quota.CLBs,
			detail: "3 of 3 CLBs of the account (100 %; value: configured)", center: doctor.OK},
		"an endpoint that is not the cloud": {breaks: func(_ *testing.T, p *patient) {
			p.env.Endpoints["quotas"] = ""
		}, limit: 4, first: quota.CLBs, detail: "3 of 30", center: doctor.OK, empty: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.createCLBs(t, 3)
			p.server.Change(func(s *emulator.Settings) { s.Quotas.LoadBalancers = test.limit })
			p.nodes = append(p.nodes, testkube.Service("web", testkube.TCP(80, 81, 82, 83)))
			if test.breaks != nil {
				test.breaks(t, p)
			}
			report := p.examine(t)
			checks := quotaChecks(report)
			if len(checks) < 3 || checks[0].Subject != "Quota Center" || checks[0].Status != test.center {
				t.Fatalf("checks %+v, want first that of the Quota Center with %q", checks, test.center)
			}
			at := slices.IndexFunc(checks, func(c doctor.Check) bool {
				return strings.Contains(c.Detail, "used up first as Services are added") || c.Status == doctor.Wrong
			})
			if at < 0 || checks[at].Subject != string(test.first) || !strings.Contains(checks[at].Detail, test.detail) ||
				!strings.Contains(checks[at].Fix, alicloud.QuotaConsole) {
				t.Errorf("checks %+v, want %s with %q", checks, test.first, test.detail)
			}
			if report.Empty() != test.empty {
				t.Errorf("wrong: %v", wrongOf(report))
			}
		})
	}
}

// TestDoctorAndFullCLBsOfGroups: a CLB of a group that opens another one is full of listeners in its normal state. That is a fault only if
// the account may have no other CLB, or a Service must stay there.
func TestDoctorAndFullCLBsOfGroups(t *testing.T) {
	t.Parallel()
	const onFirst, services = 50, 60
	for name, test := range map[string]struct {
		limit, stays int
		want         doctor.Status
		text         string
	}{
		"opens another one":            {60, 0, doctor.OK, "50 of 50 listeners of the CLB of the load balancer group that has the most"},
		"the account may have no more": {2, 0, doctor.Wrong, "50 of 50 listeners of the CLB that has the most for several Services"},
		"a Service must stay":          {60, 1, doctor.Wrong, "50 of 50 listeners of the CLB that has the most for several Services"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.createCLBs(t, 2)
			p.server.Change(func(s *emulator.Settings) { s.Quotas.LoadBalancers = test.limit })
			for i := range services {
				svc := testkube.Service(fmt.Sprint("shared-", i), testkube.TCP(int32(1000+i)), testkube.Annotation(annotation.Group.Key(), "edge")) //nolint:gosec // ports
				if i >= test.stays {
					svc.Annotations[annotation.GroupOverflow.Key()] = "true"
				}
				svc.Labels = map[string]string{driver.LabelLoadBalancerID: fmt.Sprint("lb-", i/onFirst)}
				p.nodes = append(p.nodes, svc)
			}
			checks := quotaChecks(p.examine(t))
			at := slices.IndexFunc(checks, func(c doctor.Check) bool {
				return c.Subject == string(quota.ListenersPerCLB) && strings.HasPrefix(c.Detail, test.text)
			})
			if at < 0 || checks[at].Status != test.want || (test.want == doctor.OK) != (checks[at].Fix == "") ||
				test.want == doctor.OK && strings.Contains(checks[at].Detail, "used up first") {
				t.Errorf("checks %+v, want one with %q that is %s", checks, test.text, test.want)
			}
		})
	}
}

// TestDoctorCountsNodesThatNobodyChooses: where the pods, or a setting, decide which nodes are backend servers, they count: on each CLB
// together, and for each node.
func TestDoctorCountsNodesThatNobodyChooses(t *testing.T) {
	t.Parallel()
	local := func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }
	with := func(suffix annotation.Suffix, value string) func(*corev1.Service) {
		return testkube.Annotation(suffix.Key(), value)
	}
	for name, test := range map[string]struct {
		services, balancers, nodes int
		change                     func(*corev1.Service)
		nlb                        bool
		off                        bool // in the cloud-config
		want                       map[quota.Code]string
	}{
		"Local, on one CLB": {10, 1, 19, local, false, false,
			map[quota.Code]string{quota.BackendsPerCLB: "190 of 200", quota.CLBsPerInstance: "1 of 50"}},
		"Local, on many": {48, 48, 1, local, false, false,
			map[quota.Code]string{quota.BackendsPerCLB: "1 of 200", quota.CLBsPerInstance: "48 of 50"}},
		"no subsets": {48, 48, 2, with(annotation.BackendSubset, "off"), false, false,
			map[quota.Code]string{quota.BackendsPerCLB: "2 of 200", quota.CLBsPerInstance: "48 of 50"}},
		"no subsets by default": {48, 24, 2, nil, false, true,
			map[quota.Code]string{quota.BackendsPerCLB: "4 of 200", quota.CLBsPerInstance: "24 of 50"}},
		"subsets": {48, 48, 2, nil, false, false,
			map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: "48 of 50 CLBs that a node is behind on average"}},
		"subsets, more than fit": {70, 70, 2, nil, false, false,
			map[quota.Code]string{quota.CLBsPerInstance: "50 of 50 CLBs that a node is behind on average"}},
		"subsets of one node": {40, 40, 2, with(annotation.BackendSubset, "1"), false, false,
			map[quota.Code]string{quota.CLBsPerInstance: "20 of 50"}},
		"subsets on shared CLBs": {48, 12, 2, nil, false, false, map[quota.Code]string{quota.CLBsPerInstance: "12 of 50"}},
		"subsets, with NLBs":     {48, 48, 2, nil, true, false, map[quota.Code]string{quota.GroupsPerServer: "48 of 200"}},
		"subsets by an annotation": {48, 48, 2, with(annotation.BackendSubset, "auto"), false, true,
			map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: "48 of 50"}},
		"pods": {48, 48, 2, with(annotation.BackendType, "eni"), false, true,
			map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: ""}},
		"Local, on one NLB": {10, 1, 19, local, true, false,
			map[quota.Code]string{quota.ServersPerNLB: "190 of 400", quota.GroupsPerServer: "10 of 200", quota.CLBsPerInstance: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			for i := range test.nodes - 1 { // beside the one that it has
				p.server.Put(fmt.Sprint("i-x", i), fmt.Sprintf(`{"PrivateIpAddress": "10.1.8.%d"}`, i+1))
				p.nodes = append(p.nodes, patientNode(fmt.Sprint("x", i), fmt.Sprint("cn-hangzhou.i-x", i), fmt.Sprintf("10.244.%d.0/24", i+1)))
			}
			if test.off {
				p.config.BackendSubset = backend.SubsetOff
			}
			for i := range test.services {
				svc := testkube.Service(fmt.Sprint("web-", i), testkube.TCP(int32(80+i))) //nolint:gosec // ports
				svc.Labels = map[string]string{driver.LabelLoadBalancerID: fmt.Sprint("lb-", i%test.balancers)}
				if test.nlb {
					svc.Spec.LoadBalancerClass = new(nlb.Class)
				}
				if test.change != nil {
					test.change(svc)
				}
				p.nodes = append(p.nodes, svc)
			}
			got := map[quota.Code]string{}
			for _, check := range quotaChecks(p.examine(t)) {
				got[quota.Code(check.Subject)] = check.Detail
			}
			for code, want := range test.want {
				if !strings.HasPrefix(got[code], want) || want == "" && got[code] != "" {
					t.Errorf("%s: %q, want %q", code, got[code], want)
				}
			}
		})
	}
}

// served says that the load balancer of a Service matches it.
func served(svc *corev1.Service) {
	svc.Status.Conditions = []metav1.Condition{{Type: service.ConditionSynced, Status: metav1.ConditionTrue, Reason: problem.ReasonEnsured}}
}

// TestDoctorAndRaisedQuotas: more in use than a published value proves a larger one, which is not known: no fault, and no share of it is
// used up first. What Services only need, and backend servers that may be fewer, prove nothing.
func TestDoctorAndRaisedQuotas(t *testing.T) {
	t.Parallel()
	ports := func(n int) func(*corev1.Service) {
		numbers := make([]int32, n)
		for i := range numbers {
			numbers[i] = int32(1000 + i) //nolint:gosec // ports
		}
		return testkube.TCP(numbers...)
	}
	local := func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }
	ranges := func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }
	for name, test := range map[string]struct {
		services   int
		change     []func(*corev1.Service)
		configured map[string]int
		code       quota.Code
		detail     string
		status     doctor.Status
		advice     bool
	}{
		"listeners": {1, []func(*corev1.Service){ports(60), served}, nil, quota.ListenersPerCLB,
			"60 listeners of the CLB that has the most for one Service; the limit is unknown, and larger than the assumed 50 (value: published)",
			doctor.OK, true},
		"listeners that it lacks": {1, []func(*corev1.Service){ports(60)}, nil, quota.ListenersPerCLB, "60 of 50", doctor.Wrong, true},
		"listeners, configured": {1, []func(*corev1.Service){ports(60), served}, map[string]int{string(quota.ListenersPerCLB): 50},
			quota.ListenersPerCLB, "60 of 50", doctor.Wrong, false},
		"access control lists": {210, []func(*corev1.Service){ports(1), ranges, served}, nil, quota.ACLs,
			"210 access control lists that Services need; the limit is unknown", doctor.OK, true},
		"attachments": {80, []func(*corev1.Service){ports(1), local, served}, nil, quota.CLBsPerInstance, "up to 80 CLBs that a node is behind",
			doctor.OK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			without("ListProductQuotas")(t, p)
			p.config.Quotas = test.configured
			for i := range test.services {
				p.nodes = append(p.nodes, testkube.Service(fmt.Sprint("web-", i), test.change...))
			}
			report := p.examine(t)
			checks := quotaChecks(report)
			at := slices.IndexFunc(checks, func(c doctor.Check) bool { return c.Subject == string(test.code) })
			if at < 0 || !strings.HasPrefix(checks[at].Detail, test.detail) || checks[at].Status != test.status ||
				strings.Contains(checks[at].Detail, "first") ||
				strings.Contains(checks[at].Fix, "Global.quotas") != test.advice {
				t.Errorf("checks %+v, want %s with %q", checks, test.code, test.detail)
			}
			if report.Empty() != (test.status == doctor.OK) {
				t.Errorf("wrong: %v", wrongOf(report))
			}
		})
	}
}

// TestDoctorBelievesTheQuotaCenter: that nodes may be behind more CLBs than the Quota Center says does not put that in doubt.
func TestDoctorBelievesTheQuotaCenter(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for i := range 80 {
		p.nodes = append(p.nodes, testkube.Service(fmt.Sprint("web-", i), testkube.TCP(80), served, func(svc *corev1.Service) {
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}))
	}
	checks := quotaChecks(p.examine(t))
	at := slices.IndexFunc(checks, func(c doctor.Check) bool { return c.Subject == string(quota.CLBsPerInstance) })
	if at < 0 || !strings.HasPrefix(checks[at].Detail, "80 of 50 CLBs") || !strings.Contains(checks[at].Detail, string(quota.Center)) ||
		checks[at].Status != doctor.OK {
		t.Errorf("checks %+v, want 80 of 50", checks)
	}
}

// TestDoctorRanksBothSites: where the account may be of the international site, the share is that of its number, as the place in the list
// is.
func TestDoctorRanksBothSites(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	without("ListProductQuotas")(t, p)
	p.createCLBs(t, 26) //nolint:mnd // of 30, or of 60
	p.nodes = append(p.nodes, testkube.Service("web", testkube.TCP(80), testkube.TCP(81)))
	if first := quotaChecks(p.examine(t))[1]; !strings.HasPrefix(first.Detail,
		"26 of 30 CLBs of the account (87 %; value: published for the international site, 60 for the China site)") || first.Status != doctor.OK {
		t.Errorf("first %+v", first)
	}
}

// TestDoctorSaysWithWhatUsesGrow: backend servers and routes grow with nodes, load balancers with Services: the report says of each of them
// what is used up first.
func TestDoctorSaysWithWhatUsesGrow(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	for i := range 12 {
		p.nodes = append(p.nodes,
			testkube.Service(fmt.Sprint("web-", i), testkube.TCP(80), testkube.Annotation(annotation.BackendSubset.Key(), "off")))
	}
	p.config.Quotas = map[string]int{string(quota.CLBsPerInstance): 15, string(quota.BackendsPerCLB): 10}
	found := map[string]string{}
	for _, check := range quotaChecks(p.examine(t)) {
		if _, when, ok := strings.Cut(check.Detail, "; used up first as "); ok {
			found[check.Subject] = when
		}
	}
	if want := map[string]string{string(quota.CLBsPerInstance): "Services are added",
		string(quota.BackendsPerCLB): "nodes join"}; !maps.Equal(found, want) {
		t.Errorf("used up first: %v, want %v", found, want)
	}
}

// sharing adds Services that share a CLB.
func sharing(_ *testing.T, p *patient) {
	for i := range 17 {
		svc := testkube.Service(fmt.Sprint("shared-", i), testkube.TCP(int32(80+i), int32(1080+i))) //nolint:gosec // ports
		svc.Labels = map[string]string{driver.LabelLoadBalancerID: "lb-shared"}
		p.nodes = append(p.nodes, svc)
	}
}

func flipUsage(_ *testing.T, p *patient) {
	p.server.Change(func(s *emulator.Settings) { s.Flipped = []string{"quotas.usage"} })
}

func configured(t *testing.T, p *patient) {
	t.Helper()
	without("ListProductQuotas")(t, p)
	p.config.Quotas, p.config.DisableQuotaCenter = map[string]int{string(quota.CLBs): 3}, true
}

// TestQuotaCenterIsOptional: a key without the permission is no fault, and neither is a network without a way to the Quota Center.
func TestQuotaCenterIsOptional(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*testing.T, *patient){
		"permission": without("ListProductQuotas"), "endpoint": func(_ *testing.T, p *patient) { p.env.Endpoints["quotas"] = "127.0.0.1:1" },
	} {
		p := newPatient(t)
		breaks(t, p)
		if report := p.examine(t); !report.Empty() || !strings.Contains(report.String(), "disableQuotaCenter") {
			t.Errorf("%s:\n%s", name, report)
		}
	}
}

// TestReadsQuotas: the Quota Center at its usual address is that of the public cloud, so that it is left alone where other products are
// elsewhere.
func TestReadsQuotas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		want   bool
	}{
		"by default":          {Config{}, true},
		"switched off":        {Config{DisableQuotaCenter: true}, false},
		"another cloud":       {Config{Endpoints: Endpoints{"slb": "slb.example.com"}}, false},
		"with one of its own": {Config{Endpoints: Endpoints{"slb": "slb.example.com", "quotas": "quotas.example.com"}}, true},
		"off in spite of it":  {Config{Endpoints: Endpoints{"quotas": "quotas.example.com"}, DisableQuotaCenter: true}, false},
	} {
		if got := New(test.config, Environment{}).readsQuotas(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
