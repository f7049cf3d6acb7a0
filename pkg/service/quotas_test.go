package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
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
		f := &frame{t: t, kube: testkube.NewClientset(), recorder: record.NewFakeRecorder(100)}
		f.with = func(o *Options) { o.Quotas, o.Config.Quotas = center, quota.NewBook(nil) }
		f.open([]driver.Engine{center.product})
		f.start()
		test(t, f)
		f.stop()
	})
}

// TestQuotaNearlyReached: from 80 % of a quota there is one Warning, and another one only after less than 70 % were used. What the Quota
// Center shows counts, also when somebody raises it.
func TestQuotaNearlyReached(t *testing.T) {
	t.Parallel()
	center := &quotaCenter{product: newProduct("nearly"), value: 10}
	inQuotaFrame(t, center, func(t *testing.T, f *frame) {
		ports := func(n int) func(*corev1.Service) {
			return func(svc *corev1.Service) {
				svc.Spec.Ports = nil
				for i := range n {
					testkube.TCP(int32(80 + i))(svc)
				}
			}
		}
		f.put(testkube.Service("web", testkube.Class(center.product.class()), ports(7)))
		check := func(step string, warnings int, used, limit, nearly float64) {
			t.Helper()
			time.Sleep(2 * usePeriod)
			found := withReason(f.events(), problem.ReasonQuotaNearlyReached)
			if len(found) != warnings {
				t.Errorf("%s: warnings %v, want %d", step, found, warnings)
			}
			code := string(center.product.listeners())
			got := []float64{valueOf(t, quotaUsed.WithLabelValues(code)), valueOf(t, quotaLimit.WithLabelValues(code)),
				valueOf(t, quotaNearlyUsedUp.WithLabelValues(code))}
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

// TestQuotaOfEitherSite: where only the published number of CLBs is known, the Warning comes in time for an account of the international
// site, and says how to tell the manager of a larger number. It ends once the account has more than that site gives.
func TestQuotaOfEitherSite(t *testing.T) {
	t.Parallel()
	w, recorder := newQuotaWatch()
	for _, step := range []struct {
		used int
		want []string
	}{
		{23, nil},
		{24, []string{"24 of the 30 CLBs that the account can have are used (quota slb_quota_instances_num; value: published for the international site, 60 for the China site)", "set Global.quotas in the cloud-config"}},
		{31, nil},
		{48, []string{"48 of the 60"}},
	} {
		w.showAll(map[quotaSubject]figure{{code: quota.CLBs}: {used: step.used, firm: step.used, on: testkube.Service("web")}})
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
	center := &quotaCenter{product: newProduct("refused"),
		err: &alicloud.Error{Action: "ListProductQuotas", Code: "Forbidden.RAM", Status: 403}}
	inQuotaFrame(t, center, func(t *testing.T, f *frame) {
		f.put(testkube.Service("web", testkube.Class(center.product.class()), testkube.TCP(80)))
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

// TestQuotaCenterIsThrottled: a read that failed is repeated after minutes, not an hour, but more and more seldom. What was read before
// counts meanwhile.
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
		f.put(testkube.Service("web", testkube.Class(center.product.class()), testkube.TCP(80)))
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
		f := &frame{t: t, kube: testkube.NewClientset(), recorder: record.NewFakeRecorder(100)}
		f.with = func(o *Options) { o.Quotas, o.Config.Quotas = silentCenter{}, quota.NewBook(nil) }
		f.open([]driver.Engine{p})
		f.start()
		f.put(testkube.Service("web", testkube.Class(p.class()), testkube.TCP(80)))
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

// newQuotaWatch returns one that knows published values, and shows what a test says.
func newQuotaWatch() (*quotaWatch, *record.FakeRecorder) {
	recorder := record.NewFakeRecorder(10)
	registerMetrics()
	return &quotaWatch{Reconciler: &Reconciler{opts: Options{Config: config.Config{Quotas: quota.NewBook(nil)}},
		events: events.New(recorder, 0)}}, recorder
}

// emitted empties the recorder and returns what it received.
func emitted(recorder *record.FakeRecorder) []string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return all
}

// wantWarning checks that there is one warning, with a text, or none for an empty text.
func wantWarning(t *testing.T, warnings []string, want string) {
	t.Helper()
	if want == "" && len(warnings) > 0 || want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], want)) {
		t.Errorf("warnings %q, want one with %q", warnings, want)
	}
}

// TestFigures: of a quota of the account all load balancers count, each once, and what each Service has for itself. On a shared load
// balancer, what its Services know of it adds up, and what several of them know counts once, in any order.
func TestFigures(t *testing.T) {
	t.Parallel()
	p := &quotaProduct{product: newProduct("figures")}
	u := &uses{}
	put := func(name, id string, firm bool, of ...quota.Use) {
		u.noteService(testkube.Service(name), state{engine: p, balancer: usedBalancer{known: known{product: p.product, id: id}, of: of}}, firm)
	}
	backends := func(group string, n int) quota.Use {
		return quota.Use{Code: quota.BackendsPerCLB, Used: n, Part: group}
	}
	listeners := func(n int) quota.Use { return quota.Use{Code: quota.ListenersPerCLB, Used: n} }
	list := quota.Use{Code: quota.ACLs, Used: 1}
	put("a", "lb-1", false, backends("rsp-1", 200), list)
	put("b", "lb-2", true, backends("rsp-2", 20), backends("rsp-3", 21), list)
	put("c", "lb-3", true, backends("rsp-4", 30), backends("rsp-foreign", 7), listeners(4), list)
	put("d", "lb-3", false, backends("rsp-5", 31), backends("rsp-foreign", 8), listeners(5), list) // a listener is new since the pass over c
	put("e", "", false)
	for of, want := range map[quotaSubject]figure{
		{code: quota.CLBs}:              {used: 3, firm: 3},
		{code: quota.ACLs}:              {used: 4, firm: 4},
		{quota.BackendsPerCLB, "lb-1"}:  {used: 200, of: "lb-1"},
		{quota.BackendsPerCLB, "lb-2"}:  {used: 41, firm: 41, of: "lb-2"},
		{quota.BackendsPerCLB, "lb-3"}:  {used: 69, firm: 37, of: "lb-3"},
		{quota.ListenersPerCLB, "lb-3"}: {used: 5, firm: 5, of: "lb-3"},
	} {
		got := u.quotaFigures()[of]
		if got.used != want.used || got.firm != want.firm || got.of != want.of || got.on == nil {
			t.Errorf("%+v: %+v, want %+v", of, got, want)
		}
	}
	u.dropService(mark.ServiceName(testkube.Service("c")))
	u.dropService(mark.ServiceName(testkube.Service("d")))
	if got := u.quotaFigures()[quotaSubject{code: quota.CLBs}].used; got != 2 {
		t.Errorf("%d CLBs after a Service has gone", got)
	}
}

// TestWarningForEachLoadBalancer: a quota that is nearly used up on one load balancer hides no other one. The metric shows the one that
// uses most, and falls with it.
func TestWarningForEachLoadBalancer(t *testing.T) {
	t.Parallel()
	const code = "quota_of_each" // other tests do not touch its metrics
	w, recorder := newQuotaWatch()
	w.opts.Config.Quotas = quota.NewBook(map[string]int{code: 50})
	for _, step := range []struct {
		lb1, lb2     int
		warnings     []string
		used, nearly float64
	}{
		{45, 30, []string{"45 of the 50"}, 45, 1},
		{45, 49, []string{"49 of the 50"}, 49, 1},
		{36, 49, nil, 49, 1},
		{45, 0, nil, 45, 1},
		{34, 41, []string{"41 of the 50"}, 41, 1},
		{0, 0, nil, 0, 0},
	} {
		found := map[quotaSubject]figure{}
		for id, used := range map[string]int{"lb-1": step.lb1, "lb-2": step.lb2} {
			if used > 0 { // else it is gone
				found[quotaSubject{code, id}] = figure{used: used, firm: used, of: id, on: testkube.Service("web")}
			}
		}
		w.showAll(found)
		warnings := emitted(recorder)
		if len(warnings) != len(step.warnings) || len(warnings) > 0 && !strings.Contains(warnings[0], step.warnings[0]) {
			t.Errorf("%+v: warnings %q", step, warnings)
		}
		if used, nearly := valueOf(t, quotaUsed.WithLabelValues(code)), valueOf(t, quotaNearlyUsedUp.WithLabelValues(code)); used != step.used ||
			nearly != step.nearly {
			t.Errorf("%+v: used %v, nearly used up %v", step, used, nearly)
		}
	}
}

// TestFullLoadBalancersOfGroups: a group opens another load balancer when one has no room for further listeners. A full one is worth a
// Warning only if the account may have no other one, a Service may not be there, or one Service alone fills it.
func TestFullLoadBalancersOfGroups(t *testing.T) {
	t.Parallel()
	p := &quotaProduct{product: newProduct("full groups")}
	ports := func(n int) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			for i := range n {
				testkube.TCP(int32(80 + i))(svc) //nolint:gosec // ports
			}
		}
	}
	with := func(suffix annotation.Suffix, value string) func(*corev1.Service) {
		return testkube.Annotation(suffix.Key(), value)
	}
	grouped, overflows := with(annotation.Group, "edge"), with(annotation.GroupOverflow, "true")
	for name, test := range map[string]struct {
		clbs  int
		first []func(*corev1.Service)
		want  string
	}{
		"opens another one": {clbs: 60, first: []func(*corev1.Service){grouped, overflows}},
		"the account may have no more": {clbs: 1, first: []func(*corev1.Service){grouped, overflows},
			want: "50 of the 50 listeners that a CLB can have are used by lb-1 (quota slb_quota_listeners_num; value: published). Request a higher quota: "},
		"a Service must stay": {clbs: 60, first: []func(*corev1.Service){grouped}, want: "50 of the 50"},
		"no group":            {clbs: 60, first: []func(*corev1.Service){overflows}, want: "50 of the 50"},
		"a Service fills it": {clbs: 60, first: []func(*corev1.Service){grouped, overflows, ports(45)},
			want: "45 of the 50 listeners that a CLB can have are used by lb-1 for one Service of its group"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, recorder := newQuotaWatch()
			w.opts.Engines, w.opts.Config.Quotas = []driver.Engine{p}, quota.NewBook(map[string]int{string(quota.CLBs): test.clbs})
			full := state{engine: p,
				balancer: usedBalancer{known{product: p.product, id: "lb-1"}, []quota.Use{{Code: quota.ListenersPerCLB, Used: 50}}}}
			w.uses.noteService(testkube.Service("first", test.first...), full, true)
			w.uses.noteService(testkube.Service("second", grouped, overflows, ports(1)), full, true)
			w.showFigures()
			wantWarning(t, slices.DeleteFunc(emitted(recorder), func(e string) bool {
				return !strings.Contains(e, string(quota.ListenersPerCLB))
			}), test.want)
		})
	}
}

// TestQuotasThatOthersUse: what the Quota Center shows of a quota of the account is shown, also if no Service uses it, and nearly used up
// by others.
func TestQuotasThatOthersUse(t *testing.T) {
	t.Parallel()
	w, _ := newQuotaWatch()
	used := 170
	w.opts.Config.Quotas.Read(map[quota.Code]quota.Reading{quota.ACLs: {Value: 200, Used: &used}})
	found := map[quotaSubject]figure{}
	w.addUnused(found)
	if len(found) != 1 {
		t.Fatalf("found %v, want the access control lists", found)
	}
	w.showAll(found)
	code := string(quota.ACLs) // no other test shows it
	got := []float64{valueOf(t, quotaUsed.WithLabelValues(code)), valueOf(t, quotaLimit.WithLabelValues(code)),
		valueOf(t, quotaNearlyUsedUp.WithLabelValues(code))}
	if want := []float64{170, 200, 1}; !slices.Equal(got, want) {
		t.Errorf("used, limit and nearly used up are %v, want %v", got, want)
	}
}

// TestWarningOfAttachments: an instance that Services have without a choice is nearly as many times a backend as it can be. Services that
// give it up when the quota is used up do not hide that, and do not count.
func TestWarningOfAttachments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		firm, chosen int
		want         string
	}{
		"without a choice": {firm: 49,
			want: "49 of the 50 CLBs that an instance can be behind are used by i-1 (quota slb_quota_backendserver_attached_num; value: published). Request a higher quota before it is used up: "},
		"one with a choice": {firm: 49, chosen: 1, want: "49 of the 50"},
		"some with a choice": {firm: 40, chosen: 9,
			want: "40 of the 50 CLBs that an instance can be behind are used by i-1, not counting Services for which"},
		"most with a choice": {firm: 39, chosen: 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &quotaProduct{product: newProduct("attachments")}
			w, recorder := newQuotaWatch()
			w.opts.Engines = []driver.Engine{p}
			w.uses.noteService(testkube.Service("web"), state{engine: p, balancer: usedBalancer{known: known{product: p.product, id: "lb-1"}}}, false)
			use := w.use.useOfProduct(p)
			for i := range test.firm + test.chosen {
				use.putUse(types.UID(fmt.Sprint(i)), serviceUse{chosen: []string{"i-1"}, each: 1, firm: i < test.firm})
			}
			w.showFigures()
			w.showFigures()
			wantWarning(t, emitted(recorder), test.want)
		})
	}
}

// TestReadsAgainAfterChange: once Services use less of a quota of the account than when it was read, what the Quota Center shows is read
// again within minutes. Nothing is read again without a change, and not sooner where it shows no use.
func TestReadsAgainAfterChange(t *testing.T) {
	t.Parallel()
	for name, counted := range map[string]bool{"counted": true, "not counted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				center := &usageCenter{}
				w, _ := newQuotaWatch()
				p := &quotaProduct{product: newProduct("again")}
				w.opts.Engines, w.opts.Quotas = []driver.Engine{p}, center
				put := func(name string) {
					w.uses.noteService(testkube.Service(name), state{engine: p, balancer: usedBalancer{known: known{product: p.product, id: "lb-" + name}}},
						false)
				}
				put("web")
				put("shop")
				center.show(7, counted)
				ctx, stop := context.WithCancel(t.Context())
				go w.watchQuotas(ctx, make(chan struct{}), func() {})
				check := func(step string, reads int) {
					t.Helper()
					synctest.Wait()
					if used, known := w.opts.Config.Quotas.Used(quota.CLBs); known != counted || known && used != center.shown() ||
						center.reads() != reads {
						t.Errorf("%s: %d used (%v), %d reads, want %d reads", step, used, known, center.reads(), reads)
					}
				}
				time.Sleep(2*quotaPeriod + usePeriod/2)
				reads := 3 // at the start, then once an hour; the first hour begins once the Services are known
				check("two hours", reads)
				w.uses.dropService(mark.ServiceName(testkube.Service("shop")))
				center.show(6, counted)
				time.Sleep(quotaAgain + 2*usePeriod)
				if counted {
					reads++
				}
				check("after a change", reads)
				stop()
				synctest.Wait()
			})
		})
	}
}

// usageCenter shows how many CLBs the account has.
type usageCenter struct {
	mu    sync.Mutex // guards the rest
	used  *int
	asked int
}

func (c *usageCenter) show(used int, counted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used = nil; counted {
		c.used = &used
	}
}

func (c *usageCenter) shown() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.used
}

func (c *usageCenter) reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *usageCenter) ListProductQuotas(_ context.Context, name string) ([]alicloud.ProductQuota, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != alicloud.QuotasOfCLB {
		return nil, nil
	}
	c.asked++
	return []alicloud.ProductQuota{{Code: string(quota.CLBs), Total: 60, Used: c.used}}, nil
}

// quotaProduct is a product with the quotas of CLBs.
type quotaProduct struct{ *product }

func (p *quotaProduct) Product() driver.Product {
	return driver.Product{
		Name: "A", BalancerQuota: quota.CLBs, BackendQuota: quota.BackendsPerCLB, AttachmentQuota: quota.CLBsPerInstance,
		ListenerQuota: quota.ListenersPerCLB, QuotaProduct: alicloud.QuotasOfCLB,
	}
}

// usedBalancer uses quotas.
type usedBalancer struct {
	known
	of []quota.Use
}

func (b usedBalancer) Uses() []quota.Use { return b.of }
