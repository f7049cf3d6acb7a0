package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// quotaCenter shows the quota of listeners of a product, or refuses.
type quotaCenter struct {
	product *product

	mu    sync.Mutex // guards the rest
	err   error
	value int
	asked []string
}

// raise has the account have a larger quota.
func (c *quotaCenter) raise(value int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = value
}

// fails has it answer with an error from now on, nil for none.
func (c *quotaCenter) fails(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// reads is how many times somebody asked.
func (c *quotaCenter) reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

func (c *quotaCenter) ListProductQuotas(_ context.Context, name string) ([]alicloud.ProductQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, name)
	if name != c.product.name {
		return nil, c.err
	}
	return []alicloud.ProductQuota{{Code: string(c.product.listeners()), Total: c.value}}, c.err
}

// inQuotaFrame runs a test with a controller that reads quotas.
func inQuotaFrame(t *testing.T, center *quotaCenter, test func(*testing.T, *frame)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &frame{t: t, kube: testkit.NewClientset(), recorder: record.NewFakeRecorder(100)}
		f.with = func(o *Options) { o.Quotas, o.Config.Quotas = center, quota.NewBook(nil) }
		f.open([]Engine{center.product})
		f.start()
		test(t, f)
		f.stop()
	})
}

// TestQuotaNearlyReached: from 80 % of a quota there is one Warning, and another one only after less than 70 % were used. What the Quota Center shows
// counts, also when somebody raises it.
func TestQuotaNearlyReached(t *testing.T) {
	t.Parallel()
	center := &quotaCenter{product: newProduct("nearly"), value: 10}
	inQuotaFrame(t, center, func(t *testing.T, f *frame) {
		ports := func(n int) func(*corev1.Service) {
			return func(svc *corev1.Service) {
				svc.Spec.Ports = nil
				for i := range n {
					testkit.TCP(int32(80 + i))(svc)
				}
			}
		}
		f.put(testkit.Service("web", testkit.Class(center.product.class()), ports(7)))
		check := func(step string, warnings int, used, limit, nearly float64) {
			t.Helper()
			time.Sleep(2 * usePeriod)
			found := withReason(f.events(), problem.ReasonQuotaNearlyReached)
			if len(found) != warnings {
				t.Errorf("%s: warnings %v, want %d", step, found, warnings)
			}
			code := string(center.product.listeners())
			got := []float64{valueOf(t, quotaUsed.WithLabelValues(code)), valueOf(t, quotaLimit.WithLabelValues(code)), valueOf(t, quotaNearlyUsedUp.WithLabelValues(code))}
			if want := []float64{used, limit, nearly}; !slices.Equal(got, want) {
				t.Errorf("%s: used, limit and nearly used up are %v, want %v", step, got, want)
			}
		}
		check("7 of 10", 0, 7, 10, 0)
		for _, step := range []struct {
			ports, warnings int
			nearly          float64
		}{{8, 1, 1}, {9, 0, 1}, {7, 0, 1}, {8, 0, 1}, {6, 0, 0}, {8, 1, 1}} {
			f.change("web", ports(step.ports))
			check("changed", step.warnings, float64(step.ports), 10, step.nearly)
		}
		center.raise(20)
		time.Sleep(quotaPeriod)
		check("raised", 0, 8, 20, 0)
	})
}

// TestQuotaOfEitherSite: where only the published number of CLBs is known, the Warning comes in time for an account of the international site, and says how to tell
// the manager of a larger number. It ends once the account has more than that site gives.
func TestQuotaOfEitherSite(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(10)
	w := &quotaWatch{Reconciler: &Reconciler{opts: Options{Config: config.Config{Quotas: quota.NewBook(nil)}}, events: events.New(recorder, 0)}}
	for _, step := range []struct {
		used int
		want []string
	}{
		{23, nil},
		{24, []string{"24 of the 60 (published, 30 on the international site) of the quota slb_quota_instances_num", "set Global.quotas in the cloud-config"}},
		{31, nil},
		{48, []string{"48 of the 60"}},
	} {
		w.showOne(quota.CLBs, figure{used: step.used, on: testkit.Service("web")})
		text := ""
		if len(recorder.Events) > 0 {
			text = <-recorder.Events
		}
		if (text != "") != (step.want != nil) {
			t.Errorf("%d used: event %q", step.used, text)
		}
		for _, want := range step.want {
			if !strings.Contains(text, want) {
				t.Errorf("%d used: event %q, want %q", step.used, text, want)
			}
		}
	}
}

// TestQuotaCenterRefuses: without the permission nothing is different, and nobody hears of it but the log. It is tried once an hour.
func TestQuotaCenterRefuses(t *testing.T) {
	t.Parallel()
	center := &quotaCenter{product: newProduct("refused"), err: &alicloud.Error{Action: "ListProductQuotas", Code: "Forbidden.RAM", Status: 403}}
	inQuotaFrame(t, center, func(t *testing.T, f *frame) {
		f.put(testkit.Service("web", testkit.Class(center.product.class()), testkit.TCP(80)))
		if id, _ := center.product.of("web"); id == "" {
			t.Error("the Service has no load balancer")
		}
		time.Sleep(24*time.Hour + 2*usePeriod)
		if n := center.reads(); n < 24 || n > 26 {
			t.Errorf("asked %d times in a day, want once an hour", n)
		}
		for _, event := range f.events() {
			if event[:len(corev1.EventTypeWarning)] == corev1.EventTypeWarning {
				t.Errorf("event %s", event)
			}
		}
	})
}

// TestQuotaCenterIsThrottled: a read that failed is repeated after minutes, not an hour, but more and more seldom. What was read before counts meanwhile.
func TestQuotaCenterIsThrottled(t *testing.T) {
	t.Parallel()
	throttled := &alicloud.Error{Action: "ListProductQuotas", Code: "Throttling.User", Status: 400}
	center := &quotaCenter{product: newProduct("throttled"), value: 20, err: throttled}
	inQuotaFrame(t, center, func(t *testing.T, f *frame) {
		check := func(step string) {
			t.Helper()
			if got := valueOf(t, quotaLimit.WithLabelValues(string(center.product.listeners()))); got != 20 {
				t.Errorf("%s: the limit is %v, want 20", step, got)
			}
		}
		f.put(testkit.Service("web", testkit.Class(center.product.class()), testkit.TCP(80)))
		center.fails(nil)
		time.Sleep(2 * quotaRetry)
		check("after one failure")
		center.fails(throttled)
		before := center.reads()
		time.Sleep(24*time.Hour + 2*usePeriod)
		check("after a day of failures")
		const retriesInTheFirstHour = 6 // after 1, 2, 4, 8, 16 and 32 minutes
		if n := center.reads() - before; n < 24 || n > 24+retriesInTheFirstHour {
			t.Errorf("asked %d times in a day, want once an hour, and %d times more in the first one", n, retriesInTheFirstHour)
		}
	})
}

// TestQuotaCenterIsSlow: the first pass waits for the quotas, but not long.
func TestQuotaCenterIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProduct("slow")
		f := &frame{t: t, kube: testkit.NewClientset(), recorder: record.NewFakeRecorder(100)}
		f.with = func(o *Options) { o.Quotas, o.Config.Quotas = silentCenter{}, quota.NewBook(nil) }
		f.open([]Engine{p})
		f.start()
		f.put(testkit.Service("web", testkit.Class(p.class()), testkit.TCP(80)))
		time.Sleep(quotaStart)
		synctest.Wait()
		if id, _ := p.of("web"); id == "" {
			t.Error("the Service waits for the Quota Center")
		}
		f.stop()
	})
}

// silentCenter never answers.
type silentCenter struct{}

func (silentCenter) ListProductQuotas(ctx context.Context, _ string) ([]alicloud.ProductQuota, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFigures: of a quota of the account all load balancers count, each once, and of others the one that uses most. Where the manager keeps within a quota
// by itself, another one counts more.
func TestFigures(t *testing.T) {
	t.Parallel()
	p := &quotaProduct{product: newProduct("figures")}
	u := &uses{}
	put := func(name, id string, reused, kept bool, of ...quota.Use) {
		u.note(testkit.Service(name), state{engine: p, balancer: usedBalancer{known: known{product: p.product, id: id, reused: reused}, of: of}}, kept)
	}
	put("a", "lb-1", false, true, quota.Use{Code: quota.BackendsPerCLB, Used: 200}, quota.Use{Code: quota.ACLs, Used: 1})
	put("b", "lb-2", false, false, quota.Use{Code: quota.BackendsPerCLB, Used: 20}, quota.Use{Code: quota.ACLs, Used: 1})
	put("c", "lb-3", true, false, quota.Use{Code: quota.BackendsPerCLB, Used: 30})
	put("d", "lb-3", true, false, quota.Use{Code: quota.BackendsPerCLB, Used: 30})
	put("e", "", false, false)
	for code, want := range map[quota.Code]figure{quota.CLBs: {used: 3}, quota.ACLs: {used: 2}, quota.BackendsPerCLB: {used: 30, of: "lb-3"}} {
		got := u.figures()[code]
		if got.used != want.used || got.of != want.of || got.kept || got.on == nil {
			t.Errorf("%s: %+v, want %+v", code, got, want)
		}
	}
	u.drop(mark.ServiceName(testkit.Service("c")))
	u.drop(mark.ServiceName(testkit.Service("d")))
	if got := u.figures()[quota.CLBs].used; got != 2 {
		t.Errorf("%d CLBs after a Service has gone", got)
	}
}

// quotaProduct is a product with the quotas of CLBs.
type quotaProduct struct{ *product }

func (p *quotaProduct) Product() Product {
	return Product{Name: "A", BalancerQuota: quota.CLBs, BackendQuota: quota.BackendsPerCLB}
}

// usedBalancer uses quotas.
type usedBalancer struct {
	known
	of []quota.Use
}

func (b usedBalancer) Uses() []quota.Use { return b.of }
