// Package console tests the emulator's console in headless Chromium. It is a module of its own for its driver of the browser, which
// nothing else of the emulator needs.
package console

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
)

// screenshots is where the pictures of docs/ are written.
var screenshots = flag.String("screenshots", "", "write pictures of the console into this directory")

// browser is a headless Chromium with one tab, and what went wrong in it.
type browser struct {
	context.Context
	t      *testing.T
	mu     sync.Mutex
	faults []string // guarded by mu
}

func newBrowser(t *testing.T, home string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("chromium is missing: install the package chromium (%v)", err)
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun)
	for _, f := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(f, true))
	}
	options = append(options, chromedp.WSURLReadTimeout(time.Minute))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	b := &browser{Context: ctx, t: t}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		closeTab()
		stop()
		allocatorWait(allocator)
	})
	chromedp.ListenTarget(ctx, func(event any) { b.note(event, home) })
	return b
}

// allocatorWait waits until the browser's process and its files are gone.
func allocatorWait(ctx context.Context) {
	if c := chromedp.FromContext(ctx); c != nil && c.Allocator != nil {
		c.Allocator.Wait()
	}
}

// note remembers errors of scripts, refused resources and requests to other hosts.
func (b *browser) note(event any, home string) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		fault = e.Entry.Text
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, home) {
			fault = "request to " + e.Request.URL
		}
	}
	if fault != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, fault)
	}
}

func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// holds waits until an expression of the page is true. Errors in between are those of a page that is being left.
func (b *browser) holds(what, expression string) {
	b.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		var holds bool
		err := chromedp.Run(b, chromedp.Evaluate("!!("+expression+")", &holds))
		if err == nil && holds {
			return
		}
		select {
		case <-deadline:
			b.t.Fatalf("%s: not in time: %s (%v)", what, expression, err)
		case <-tick.C:
		}
	}
}

func (b *browser) eval(expression string) (result string) {
	b.t.Helper()
	b.do(expression, chromedp.Evaluate(expression, &result))
	return result
}

// picture writes a screenshot, where they are wanted.
func (b *browser) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	var png []byte
	b.do("screenshot", chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(*screenshots, name), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func prefers(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	})
}

// hostile is a name from outside.
const hostile = `<script>document.title="broken"</script>`

// scene is an emulator with some life in it.
type scene struct {
	*emulatortest.Cloud
	t *testing.T
}

func newScene(t *testing.T) *scene {
	t.Helper()
	m := &emulatortest.Machines{Refusing: "i-worker3"}
	t.Cleanup(m.Wait)
	config := cloud.DefaultConfig()
	// Windows of a day: the test should not meet the end of one.
	config.RateLimits = map[string]cloud.RateLimitConfig{"slb:CreateLoadBalancer": {Calls: 60, Seconds: 86400}}
	return &scene{emulatortest.New(t, emulator.Options{Config: config, Fabric: true, Machines: m, RateLimits: emulator.RateLimitsPublished}),
		t}
}

func (s *scene) put(id string, spec emulator.InstanceSpec) {
	s.t.Helper()
	if _, err := s.PutInstance(id, spec); err != nil {
		s.t.Fatal(err)
	}
}

// populate makes what a small cluster makes: three nodes, two Services, routes for the pods.
func (s *scene) populate() (firstLB string) {
	s.t.Helper()
	for i := 1; i <= 3; i++ {
		s.put(fmt.Sprintf("i-worker%d", i), emulator.InstanceSpec{Name: fmt.Sprintf("worker-%d", i), VSwitchID: []string{"vsw-a", "vsw-b"}[i%2]})
		s.Raw("2016-04-28", "CreateRouteEntry", map[string]string{
			"RouteTableId": "vtb-emulator", "DestinationCidrBlock": fmt.Sprintf("172.20.%d.0/24", i),
			"NextHopId": fmt.Sprintf("i-worker%d", i), "NextHopType": "Instance", "RouteEntryName": "pods",
		}, nil)
	}
	for i, name := range []string{"shop/web", "payments/api"} {
		lb := s.create(name, i)
		if i == 0 {
			firstLB = lb
		}
	}
	if code := s.CLI("aliyun slb DeleteVServerGroup --VServerGroupId rsp-none"); code == "" {
		s.t.Error("a server group that does not exist is deleted")
	}
	return firstLB
}

func (s *scene) create(name string, i int) string {
	s.t.Helper()
	var lb struct{ LoadBalancerId string }
	var group struct{ VServerGroupId string }
	namespace, service, _ := strings.Cut(name, "/")
	mark := func(port string) string { return "k8s/" + port + "/" + service + "/" + namespace + "/c1" }
	s.Raw("2014-05-15", "CreateLoadBalancer", map[string]string{
		"LoadBalancerName": name, "AddressType": []string{"internet", "intranet"}[i], "VSwitchId": []string{"", "vsw-a"}[i],
		"Tag.1.Key": "kubernetes.do.not.delete", "Tag.1.Value": "a1b2c3d4",
	}, &lb)
	s.Raw("2014-05-15", "CreateVServerGroup", map[string]string{
		"LoadBalancerId": lb.LoadBalancerId, "VServerGroupName": mark("30080"),
		"BackendServers": `[{"ServerId":"i-worker1","Port":30080,"Weight":100},{"ServerId":"i-worker2","Port":30080,"Weight":50},{"ServerId":"i-worker3","Port":30080,"Weight":100}]`,
	}, &group)
	s.Raw("2014-05-15", "CreateLoadBalancerTCPListener", map[string]string{
		"LoadBalancerId": lb.LoadBalancerId, "ListenerPort": "8443", "VServerGroupId": group.VServerGroupId, "Bandwidth": "-1",
		"Description":        mark("8443"),
		"UnhealthyThreshold": "2", "HealthyThreshold": "2", "healthCheckInterval": "1",
	}, nil)
	s.Raw("2014-05-15", "CreateLoadBalancerHTTPListener", map[string]string{
		"LoadBalancerId": lb.LoadBalancerId, "ListenerPort": "8080", "ListenerForward": "on", "ForwardPort": "8443",
	}, nil)
	s.Raw("2014-05-15", "StartLoadBalancerListener", map[string]string{"LoadBalancerId": lb.LoadBalancerId, "ListenerPort": "8443"}, nil)
	return lb.LoadBalancerId
}

func TestInChromium(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	home := s.URL()
	b := newBrowser(t, home)
	b.do("open", network.Enable(), log.Enable(), emulation.SetFocusEmulationEnabled(true), prefers("light"),
		chromedp.EmulateViewport(1280, 1000), chromedp.Navigate(home))
	b.holds("the address of the emulator leads to the console", `location.pathname === "/console/"`)
	b.holds("the stream is on", `document.getElementById("live").textContent === "live"`)

	// Changes appear without a reload.
	lb := s.populate()
	b.holds("load balancers appear", `document.querySelectorAll("details.card[open]").length === 2`)
	b.holds("Services appear",
		`[...document.querySelectorAll("#services tbody tr")].map(r => r.querySelector("strong").textContent).join() === "payments/api,shop/web"`)
	b.holds("Services that fail", `document.querySelectorAll("#services .status.bad").length === 2`)
	b.holds("checks appear",
		`document.querySelectorAll("#loadbalancers .health .status.bad").length === 2 && document.querySelectorAll("#loadbalancers .health .status.good").length === 4`)
	b.holds("routes appear", `document.getElementById("routes").textContent.includes("172.20.3.0/24")`)
	b.holds("calls appear", `document.querySelector("#calls .code").textContent === "InvalidParameter"`)
	b.holds("windows appear",
		`[...document.querySelectorAll("#windows li")].some(l => l.textContent.includes("CreateLoadBalancer") && l.textContent.includes("2 of 60"))`)
	b.picture("console-light.png")
	b.do("scroll", chromedp.Evaluate(`document.getElementById("instances-h").scrollIntoView()`, nil))
	b.picture("console-calls.png")

	// Names from outside are text.
	s.put("i-hostile", emulator.InstanceSpec{Name: hostile})
	b.holds("a hostile name is shown", `document.getElementById("instances").textContent.includes("<script>")`)
	if title := b.eval(`document.title`); title != "Alibaba Cloud emulator" {
		t.Errorf("a name ran as a script: the title is %q", title)
	}
	s.ReleaseInstance("i-hostile")

	b.keyboard(lb, func() { s.put("i-worker4", emulator.InstanceSpec{Name: "worker-4"}) })
	b.looks()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		t.Errorf("the browser complains: %q", b.faults)
	}
}

// keyboard uses the page without a mouse; change makes the page change in between.
func (b *browser) keyboard(lb string, change func()) {
	b.t.Helper()
	b.do("first key", chromedp.Evaluate(`window.scrollTo(0, 0)`, nil), chromedp.KeyEvent(kb.Tab))
	b.holds("the first stop is the skip link", `document.activeElement.textContent === "Skip to content"`)
	b.press(`#`+lb+` > summary`, kb.Enter)
	b.holds("the card closes", `!document.getElementById("`+lb+`").open`)
	before := b.eval(`document.getElementById("instances").innerHTML`)
	change()
	b.holds("the page changes", `document.getElementById("instances").textContent.includes("worker-4")`)
	if before == b.eval(`document.getElementById("instances").innerHTML`) {
		b.t.Error("nothing changed")
	}
	b.holds("the card stays closed", `!document.getElementById("`+lb+`").open`)
	b.holds("the focus stays", `document.activeElement.closest("details") && document.activeElement.closest("details").id === "`+lb+`"`)
	b.do("open it again", chromedp.KeyEvent(kb.Enter))
	b.holds("the card opens", `document.getElementById("`+lb+`").open`)
	// One event with text is a key press that a script can prevent; KeyEvent would send the character apart.
	slash := input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/")
	b.do("filter", slash, input.DispatchKeyEvent(input.KeyUp).WithKey("/"), chromedp.KeyEvent("payments"), chromedp.KeyEvent(kb.Enter))
	b.holds("one card is left", `location.search === "?q=payments&calls=" && document.querySelectorAll("details.card").length === 1`)
	b.do("choose failed calls",
		chromedp.Evaluate(`document.getElementById("only").value = "errors", document.getElementById("q").value = ""`, nil))
	b.press(`form button`, kb.Enter)
	b.holds("only failed calls",
		`location.search === "?q=&calls=errors" && document.querySelectorAll("#calls .call").length === 1 && document.getElementById("summary").textContent.includes("Only calls that failed")`)
	b.press(`.filter a`, kb.Enter)
	b.holds("two cards again", `location.search === "" && document.querySelectorAll("details.card").length === 2`)
}

// press gives the focus to what the selector finds and presses a key there. The page finds it itself: the node that chromedp would
// remember may be replaced, by a change or by the next page, before it is used.
func (b *browser) press(selector, key string) {
	b.t.Helper()
	b.do("press a key on "+selector, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).focus()`, selector), nil),
		chromedp.KeyEvent(key))
}

// looks checks the dark colors and the narrow page.
func (b *browser) looks() {
	b.t.Helper()
	const background = `getComputedStyle(document.body).backgroundColor`
	light := b.eval(background)
	b.do("dark", prefers("dark"))
	if dark := b.eval(background); dark == light {
		b.t.Errorf("the page is %s in the dark, too", dark)
	}
	b.picture("console-dark.png")
	b.do("phone", prefers("light"), chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
	b.holds("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	b.holds("the menu is one row", `document.querySelector(".links").offsetHeight < 50`)
	b.holds("states of both products are spelled alike",
		`getComputedStyle(document.querySelector(".status"), "::first-letter").textTransform === "uppercase"`)
	b.holds("the cluster of a Service is shown to a pointer only",
		`document.querySelector("#services strong").title === "cluster c1" && !/\bc1\b/.test(document.getElementById("services").textContent)`)
	b.holds("cells tell their column", `getComputedStyle(document.querySelector("td[data-label=Weight]"), "::before").content === '"Weight"'`)
	b.do("scroll", chromedp.Evaluate(`document.getElementById("loadbalancers-h").scrollIntoView()`, nil))
	b.picture("console-phone.png")
}
