package service

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// shownLimit is what the metric says of the value of a quota, false for nothing.
func shownLimit(t *testing.T, code quota.Code) (value float64, shown bool) {
	t.Helper()
	for _, family := range testkit.Must(legacyregistry.DefaultGatherer.Gather())(t) {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "alicloud_quota_limit" && metric.GetLabel()[0].GetValue() == string(code) {
				return metric.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

// TestQuotaThatSomebodyRaised: more in use than a value that is only assumed proves a larger one, for all load balancers. How large is not
// known: nothing is nearly used up, and the metric shows no value. What somebody has configured counts, whatever is used.
func TestQuotaThatSomebodyRaised(t *testing.T) { //nolint:paralleltest // the metrics of those quotas are those of the process
	on := testkube.Service("web")
	for name, test := range map[string]struct {
		configured  map[string]int
		found       map[quotaSubject]figure
		code        quota.Code
		warnings    int
		used, limit float64 // no limit is unknown
	}{
		"listeners": {found: map[quotaSubject]figure{{quota.ListenersPerNLB, "nlb-1"}: {used: 60, firm: 60, of: "nlb-1", on: on}},
			code: quota.ListenersPerNLB, used: 60},
		"attachments": {found: map[quotaSubject]figure{{code: quota.GroupsPerServer}: {used: 280, firm: 280, of: "i-1", on: on}},
			code: quota.GroupsPerServer, used: 280},
		"load balancers": {found: map[quotaSubject]figure{{code: quota.NLBs}: {used: 61, firm: 61, on: on}}, code: quota.NLBs, used: 61},
		"as many as assumed": {found: map[quotaSubject]figure{{code: quota.NLBs}: {used: 60, firm: 60, on: on}}, code: quota.NLBs, warnings: 1,
			used: 60, limit: 60},
		"another one has fewer": {found: map[quotaSubject]figure{{quota.ListenersPerNLB, "nlb-1"}: {used: 60, firm: 60, of: "nlb-1", on: on},
			{quota.ListenersPerNLB, "nlb-2"}: {used: 45, firm: 45, of: "nlb-2", on: on}}, code: quota.ListenersPerNLB, used: 60},
		"configured": {
			configured: map[string]int{string(quota.NLBs): 50}, found: map[quotaSubject]figure{{code: quota.NLBs}: {used: 61, firm: 61, on: on}},
			code: quota.NLBs, warnings: 1, used: 61, limit: 50,
		},
	} {
		w, recorder := newQuotaWatch()
		w.opts.Config.Quotas = quota.NewBook(test.configured)
		w.showAll(test.found)
		if warnings := emitted(recorder); len(warnings) != test.warnings {
			t.Errorf("%s: warnings %q, want %d", name, warnings, test.warnings)
		}
		limit, shown := shownLimit(t, test.code)
		if used := valueOf(t, quotaUsed.WithLabelValues(string(test.code))); used != test.used || limit != test.limit ||
			shown != (test.limit > 0) {
			t.Errorf("%s: used %v, limit %v, want %v and %v", name, used, limit, test.used, test.limit)
		}
	}
}

// TestQuotaKnownFromRefusal: what the cloud refused to one load balancer is the limit of that one. The metrics show the one that uses the
// largest share of its limit.
func TestQuotaKnownFromRefusal(t *testing.T) { //nolint:paralleltest // the metrics of the quota are those of the process
	on := testkube.Service("web")
	w, recorder := newQuotaWatch()
	w.opts.Config.Quotas.Learn(quota.ServersPerNLB, "nlb-2", 100)
	w.showAll(map[quotaSubject]figure{
		{quota.ServersPerNLB, "nlb-1"}: {used: 150, firm: 150, of: "nlb-1", on: on},
		{quota.ServersPerNLB, "nlb-2"}: {used: 100, firm: 100, of: "nlb-2", on: on},
	})
	warnings := emitted(recorder)
	for _, want := range []string{"100 of the 100", "nlb-2", "known from a refusal", "quotas:ListProductQuotas"} {
		if len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("warnings %q, want one with %q", warnings, want)
		}
	}
	limit, _ := shownLimit(t, quota.ServersPerNLB)
	if used := valueOf(t, quotaUsed.WithLabelValues(string(quota.ServersPerNLB))); used != 100 || limit != 100 {
		t.Errorf("used %v of %v, want 100 of 100", used, limit)
	}
}

// TestAttachmentsKnownFromRefusal: the instance counts that is a backend most often, also beside one to which the cloud refused more. What
// Services have chosen, and the cloud has not accepted yet, is no proof of a larger quota.
func TestAttachmentsKnownFromRefusal(t *testing.T) {
	t.Parallel()
	const others, refused = 44, 30
	for name, test := range map[string]struct {
		others, refused, accepted int
		want                      string
	}{
		"a refusal":               {others: others, refused: refused, want: "44 of the 50"},
		"none":                    {others: others, want: "44 of the 50"},
		"chosen and not accepted": {others: 60, want: "50 of the 50"},
		"accepted":                {others: 60, accepted: 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &quotaProduct{product: newProduct("attachments")}
			w, recorder := newQuotaWatch()
			w.opts.Engines = []driver.Engine{p}
			w.uses.noteService(testkube.Service("web"), state{engine: p, balancer: usedBalancer{known: known{product: p.product, id: "lb-1"}}}, false)
			use := w.use.useOfProduct(p)
			for i := range test.others {
				ids := []string{"i-1"}
				if i < test.refused {
					ids = append(ids, "i-2")
				}
				use.putUse(types.UID(rune(i)), serviceUse{chosen: ids, each: 1, firm: true})
			}
			for range test.accepted {
				use.observed.addUse("", "i-1", 1, 1)
			}
			use.mostObserved = -1
			if test.refused > 0 {
				use.noteRefusal("i-2", w.opts.Config.Quotas.Limit(quota.CLBsPerInstance).Value)
			}
			w.showFigures()
			wantWarning(t, emitted(recorder), test.want)
		})
	}
}

// TestGroupsAndRaisedQuota: an account that has more load balancers than an assumed value allows may have another one, so that a group can
// open it.
func TestGroupsAndRaisedQuota(t *testing.T) {
	t.Parallel()
	for clbs, want := range map[int]int{60: 2, 61: 0} { // warnings: of the CLBs, and of the listeners of the full one
		p := &quotaProduct{product: newProduct("raised")}
		w, recorder := newQuotaWatch()
		w.opts.Engines = []driver.Engine{p}
		for i := range clbs {
			name, used := fmt.Sprint("web-", i), []quota.Use{}
			if i == 0 {
				used = append(used, quota.Use{Code: quota.ListenersPerCLB, Used: 50})
			}
			svc := testkube.Service(name, testkube.Annotation(annotation.Group.Key(), "edge"),
				testkube.Annotation(annotation.GroupOverflow.Key(), "true"), testkube.TCP(80))
			w.uses.noteService(svc, state{engine: p, balancer: usedBalancer{known{product: p.product, id: name}, used}}, true)
		}
		w.showFigures()
		codes := map[string]bool{}
		for _, warning := range emitted(recorder) {
			for _, code := range []quota.Code{quota.CLBs, quota.ListenersPerCLB} {
				codes[string(code)] = codes[string(code)] || strings.Contains(warning, string(code))
			}
		}
		found := 0
		for _, is := range codes {
			if is {
				found++
			}
		}
		if found != want {
			t.Errorf("%d CLBs: warnings of %v, want of %d quotas", clbs, codes, want)
		}
	}
}
