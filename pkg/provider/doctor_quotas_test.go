package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
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
