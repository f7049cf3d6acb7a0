package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
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
		testkit.Must(client.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{AddressType: alicloud.AddressInternet, InstanceChargeType: "PayByCLCU"}, ""))(t)
	}
}

// TestDoctorShowsQuotas: the quota that is used up first when the cluster grows stands first, with the place to ask for more; the use is that of the whole account.
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
		"CLBs first":                        {limit: 4, first: quota.CLBs, detail: "3 of 4", center: doctor.OK, empty: true},
		"used up":                           {limit: 3, first: quota.CLBs, detail: "3 of 3", center: doctor.OK},
		"ports first":                       {limit: 60, first: quota.ListenersPerCLB, detail: "4 of 50", center: doctor.OK, empty: true},
		"ports of a CLB that is shared":     {breaks: sharing, limit: 60, first: quota.ListenersPerCLB, detail: "34 of 50", center: doctor.OK, empty: true},
		"not counted by the Quota Center":   {breaks: flipUsage, limit: 4, first: quota.CLBs, detail: "3 of 4", center: doctor.OK, empty: true},
		"without the permission":            {breaks: without("ListProductQuotas"), limit: 4, first: quota.CLBs, detail: "3 of 60 CLBs of the account (5 %; value: published, 30 on the international site)", center: doctor.Optional, empty: true},
		"without it, configured":            {breaks: configured, limit: 4, first: quota.CLBs, detail: "3 of 3 CLBs of the account (100 %; value: configured)", center: doctor.OK},
		"an endpoint that is not the cloud": {breaks: func(_ *testing.T, p *patient) { p.env.Endpoints["quotas"] = "" }, limit: 4, first: quota.CLBs, detail: "3 of 60", center: doctor.OK, empty: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.createCLBs(t, 3)
			p.server.Change(func(s *emulator.Settings) { s.Quotas.LoadBalancers = test.limit })
			p.nodes = append(p.nodes, testkit.Service("web", testkit.TCP(80, 81, 82, 83)))
			if test.breaks != nil {
				test.breaks(t, p)
			}
			report := p.examine(t)
			checks := quotaChecks(report)
			if len(checks) < 3 || checks[0].Subject != "Quota Center" || checks[0].Status != test.center {
				t.Fatalf("checks %+v, want first that of the Quota Center with %q", checks, test.center)
			}
			if first := checks[1]; first.Subject != string(test.first) || !strings.Contains(first.Detail, test.detail) || !strings.Contains(first.Detail, "first") || !strings.Contains(first.Fix, quota.ConsoleURL) {
				t.Errorf("first %+v, want %s with %q", first, test.first, test.detail)
			}
			if report.Empty() != test.empty {
				t.Errorf("wrong: %v", wrongOf(report))
			}
		})
	}
}

// TestDoctorAndFullCLBsOfGroups: a CLB of a group that opens another one is full of listeners in its normal state. That is a fault only if the account may have no
// other CLB, or a Service must stay there.
func TestDoctorAndFullCLBsOfGroups(t *testing.T) {
	t.Parallel()
	const onFirst, services = 50, 60
	for name, test := range map[string]struct {
		limit, stays int
		want         doctor.Status
		text         string
	}{
		"opens another one":            {60, 0, doctor.OK, "50 of 50 listeners of the CLB of the load balancer group that has the most"},
		"the account may have no more": {2, 0, doctor.Wrong, "50 of 50 listeners of the CLB that has the most for Services"},
		"a Service must stay":          {60, 1, doctor.Wrong, "50 of 50 listeners of the CLB that has the most for Services"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.createCLBs(t, 2)
			p.server.Change(func(s *emulator.Settings) { s.Quotas.LoadBalancers = test.limit })
			for i := range services {
				svc := testkit.Service(fmt.Sprint("shared-", i), testkit.TCP(int32(1000+i)), testkit.Annotation(annotation.Group.Key(), "edge")) //nolint:gosec // ports
				if i >= test.stays {
					svc.Annotations[annotation.GroupOverflow.Key()] = "true"
				}
				svc.Labels = map[string]string{service.LabelLoadBalancerID: fmt.Sprint("lb-", i/onFirst)}
				p.nodes = append(p.nodes, svc)
			}
			checks := quotaChecks(p.examine(t))
			at := slices.IndexFunc(checks, func(c doctor.Check) bool {
				return c.Subject == string(quota.ListenersPerCLB) && strings.HasPrefix(c.Detail, test.text)
			})
			if at < 0 || checks[at].Status != test.want || (test.want == doctor.OK) != (checks[at].Fix == "") || test.want == doctor.OK && strings.Contains(checks[at].Detail, "used up first") {
				t.Errorf("checks %+v, want one with %q that is %s", checks, test.text, test.want)
			}
		})
	}
}

// TestDoctorCountsNodesThatNobodyChooses: where the pods, or a setting, decide which nodes are backend servers, they count: on each CLB together, and for each node.
func TestDoctorCountsNodesThatNobodyChooses(t *testing.T) {
	t.Parallel()
	local := func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }
	with := func(suffix annotation.Suffix, value string) func(*corev1.Service) {
		return testkit.Annotation(suffix.Key(), value)
	}
	for name, test := range map[string]struct {
		services, balancers, nodes int
		change                     func(*corev1.Service)
		nlb                        bool
		off                        bool // in the cloud-config
		want                       map[quota.Code]string
	}{
		"Local, on one CLB":        {10, 1, 19, local, false, false, map[quota.Code]string{quota.BackendsPerCLB: "190 of 200", quota.CLBsPerInstance: "1 of 50"}},
		"Local, on many":           {48, 48, 1, local, false, false, map[quota.Code]string{quota.BackendsPerCLB: "1 of 200", quota.CLBsPerInstance: "48 of 50"}},
		"no subsets":               {48, 48, 2, with(annotation.BackendSubset, "off"), false, false, map[quota.Code]string{quota.BackendsPerCLB: "2 of 200", quota.CLBsPerInstance: "48 of 50"}},
		"no subsets by default":    {48, 24, 2, nil, false, true, map[quota.Code]string{quota.BackendsPerCLB: "4 of 200", quota.CLBsPerInstance: "24 of 50"}},
		"subsets":                  {48, 48, 2, nil, false, false, map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: ""}},
		"subsets by an annotation": {48, 48, 2, with(annotation.BackendSubset, "auto"), false, true, map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: ""}},
		"pods":                     {48, 48, 2, with(annotation.BackendType, "eni"), false, true, map[quota.Code]string{quota.BackendsPerCLB: "", quota.CLBsPerInstance: ""}},
		"Local, on one NLB":        {10, 1, 19, local, true, false, map[quota.Code]string{quota.ServersPerNLB: "190 of 400", quota.GroupsPerServer: "10 of 200", quota.CLBsPerInstance: ""}},
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
				svc := testkit.Service(fmt.Sprint("web-", i), testkit.TCP(int32(80+i))) //nolint:gosec // ports
				svc.Labels = map[string]string{service.LabelLoadBalancerID: fmt.Sprint("lb-", i%test.balancers)}
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

// sharing adds Services that share a CLB.
func sharing(_ *testing.T, p *patient) {
	for i := range 17 {
		svc := testkit.Service(fmt.Sprint("shared-", i), testkit.TCP(int32(80+i), int32(1080+i))) //nolint:gosec // ports
		svc.Labels = map[string]string{service.LabelLoadBalancerID: "lb-shared"}
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

// TestReadsQuotas: the Quota Center at its usual address is that of the public cloud, so that it is left alone where other products are elsewhere.
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
