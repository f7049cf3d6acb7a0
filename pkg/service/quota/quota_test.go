package quota

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestWhichValueCounts: configured values count before those of the Quota Center, and these before published ones; what a refusal has shown
// of a resource counts for that resource.
func TestWhichValueCounts(t *testing.T) {
	t.Parallel()
	b := NewBook(map[string]int{string(ListenersPerCLB): 70})
	b.Read(map[Code]Reading{ListenersPerCLB: {Value: 60}, BackendsPerCLB: {Value: 400}, CLBs: {Value: 0}})
	b.Learn(ListenersPerCLB, "lb-1", 10)
	b.Learn(BackendsPerCLB, "lb-1", 300)
	b.Learn(CLBsPerInstance, "i-1", 49)
	for name, test := range map[string]struct {
		got, want Limit
	}{
		"configured":                  {b.Of(ListenersPerCLB, "lb-1"), Limit{Value: 70, Source: Configured}},
		"a refusal":                   {b.Of(BackendsPerCLB, "lb-1"), Limit{Value: 300, Source: Refusal, Assumed: true}},
		"the Quota Center":            {b.Of(BackendsPerCLB, "lb-2"), Limit{Value: 400, Source: Center, Assumed: true}},
		"no value of the Center":      {b.Limit(CLBs), Limit{Value: 60, Source: Published, Assumed: true, Abroad: 30}},
		"published":                   {b.Limit(CLBsPerInstance), Limit{Value: 50, Source: Published, Assumed: true}},
		"without a book":              {(*Book)(nil).Of(CLBsPerInstance, "i-1"), Limit{Value: 50, Source: Published, Assumed: true}},
		"refused, of another product": {b.Of(GroupsPerServer, "i-1"), Limit{Value: 200, Source: Published, Assumed: true}},
	} {
		if d := cmp.Diff(test.want, test.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestRaisedQuota: what refusals have shown ends with the time, or as soon as the Quota Center shows that somebody has raised the quota.
func TestRaisedQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBook(nil)
		read := func(value int) bool { return b.Read(map[Code]Reading{BackendsPerCLB: {Value: value}}) }
		if read(200) {
			t.Error("the published value is a change")
		}
		b.Learn(BackendsPerCLB, "lb-1", 150)
		if read(200) || b.Of(BackendsPerCLB, "lb-1").Value != 150 {
			t.Error("a refusal is forgotten although nothing changed")
		}
		if !read(400) || b.Of(BackendsPerCLB, "lb-1").Value != 400 {
			t.Error("a refusal outlives the quota")
		}
		b.Learn(BackendsPerCLB, "lb-1", 150)
		time.Sleep(waits.LoadBalancerFull)
		if got := b.Of(BackendsPerCLB, "lb-1").Value; got != 400 {
			t.Errorf("after an hour: %d", got)
		}
		if used, known := b.Used(BackendsPerCLB); known {
			t.Errorf("%d used, and nobody counts", used)
		}
		b.Read(map[Code]Reading{CLBs: {Value: 60, Used: new(7)}})
		if used, known := b.Used(CLBs); !known || used != 7 {
			t.Errorf("used %d, %v", used, known)
		}
	})
}

// TestQuotaOfTheOtherSite: nothing tells the manager to which site an account belongs, so that the lower published value counts until more
// is used, or known.
func TestQuotaOfTheOtherSite(t *testing.T) {
	t.Parallel()
	b := NewBook(nil)
	for used, want := range map[int]int{0: 30, 30: 30, 31: 60} {
		if got := b.Limit(CLBs).Bound(used); got != want {
			t.Errorf("%d used: bound %d, want %d", used, got, want)
		}
	}
	for used, want := range map[int]string{30: "published for the international site, 60 for the China site",
		31: "published for the China site"} {
		if got := b.Limit(CLBs).Origin(used); got != want {
			t.Errorf("%d used: origin %q, want %q", used, got, want)
		}
	}
	b.Read(map[Code]Reading{CLBs: {Value: 60}})
	for name, limit := range map[string]Limit{
		"the Quota Center": b.Limit(CLBs), "configured": NewBook(map[string]int{string(CLBs): 60}).Limit(CLBs),
		"published": NewBook(nil).Limit(NLBs),
	} {
		if limit.Bound(1) != 60 || limit.Origin(1) != name {
			t.Errorf("%s: bound %d of %s, want 60", name, limit.Bound(1), limit.Origin(1))
		}
	}
}

// TestUseBeyondTheValue: more in use than an assumed value proves a larger one. A value that somebody has configured stays, and so does one
// of the Quota Center of which it counts more itself: somebody has lowered it.
func TestUseBeyondTheValue(t *testing.T) {
	t.Parallel()
	read := func(used *int) Limit {
		b := NewBook(nil)
		b.Read(map[Code]Reading{NLBs: {Value: 60, Used: used}})
		return b.Limit(NLBs)
	}
	for name, test := range map[string]struct {
		limit  Limit
		used   int
		want   bool
		advice bool
	}{
		"published":                        {NewBook(nil).Limit(NLBs), 61, true, true},
		"published, just used up":          {NewBook(nil).Limit(NLBs), 60, false, true},
		"configured":                       {NewBook(map[string]int{string(NLBs): 60}).Limit(NLBs), 61, false, false},
		"raised since the Center was read": {read(new(59)), 61, true, false},
		"not counted by the Center":        {read(nil), 61, true, false},
		"lowered":                          {read(new(61)), 61, false, false},
	} {
		if got := test.limit.Exceeded(test.used); got != test.want || (test.limit.Advice() != "") != test.advice {
			t.Errorf("%s: exceeded %v, advice %q", name, got, test.limit.Advice())
		}
	}
}

// TestWords: texts say of each quota what it is.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, code := range Codes() {
		if Code(code).Words() == "" {
			t.Errorf("no words for %s", code)
		}
	}
}

func TestNearly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		used, limit  int
		before, want bool
	}{{79, 100, false, false}, {80, 100, false, true}, {75, 100, true, true}, {69, 100, true, false}, {5, 0, false, false},
		{5, 0, true, false}} {
		if got := Nearly(test.used, test.limit, test.before); got != test.want {
			t.Errorf("Nearly(%+v) = %v", test, got)
		}
	}
}
