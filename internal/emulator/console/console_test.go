package console_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

const hostile = `<script>document.title="broken"</script>`

func TestEverythingIsEscaped(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put("i-1", emulator.InstanceSpec{Name: hostile})
	s.call("2014-05-15", "CreateLoadBalancer", map[string]string{"LoadBalancerName": hostile, "Tag.1.Key": hostile, "Tag.1.Value": "x"})
	s.call("2014-05-15", hostile, map[string]string{hostile: hostile})
	body, header := s.fetch("/console/?q=" + "%3Cscript%3E")
	if strings.Contains(body, hostile) || strings.Contains(body, `value="<script>`) {
		t.Error("the page holds a script from outside")
	}
	if n := strings.Count(body, "&lt;script&gt;"); n < 5 {
		t.Errorf("the page shows %d escaped names, want the instance, the load balancer, its tag, the call and the filter", n)
	}
	if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy = %q", csp)
	}
}

func TestFilterAndLimit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i := range 120 {
		s.put(fmt.Sprintf("i-%03d", i), emulator.InstanceSpec{Name: fmt.Sprintf("worker-%03d", i)})
	}
	all, _ := s.fetch("/console/")
	if !strings.Contains(all, "20 more are not shown") || strings.Contains(all, "worker-119") || !strings.Contains(all, "<strong>120</strong> Instances") {
		t.Error("a long list is not cut to 100 with the rest counted")
	}
	one, _ := s.fetch("/console/?q=WORKER-119")
	if !strings.Contains(one, "<strong>worker-119</strong>") || strings.Contains(one, "worker-118") || strings.Contains(one, "not shown") {
		t.Error("the filter does not find what the limit hides")
	}
	none, _ := s.fetch("/console/?q=nothing-has-this")
	if !strings.Contains(none, "No instances match.") {
		t.Error("an empty result does not say so")
	}
}

// next reads the next event of a stream.
func next(t *testing.T, lines *bufio.Scanner) (name, html string) {
	t.Helper()
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = value
		}
		if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(value), &html); err != nil {
				t.Fatal(err)
			}
			return name, html
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return "", ""
}

func TestEventsCarryOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for _, want := range []string{"summary", "loadbalancers", "routes", "instances", "windows", "calls"} {
		if name, _ := next(t, lines); name != want {
			t.Fatalf("event %s, want %s", name, want)
		}
	}
	s.put("i-1", emulator.InstanceSpec{Name: "first"})
	for _, want := range []string{"summary", "instances"} {
		if name, _ := next(t, lines); name != want {
			t.Fatalf("after a new instance: event %s, want %s", name, want)
		}
	}
	s.call("2014-05-15", "DescribeLoadBalancers", nil)
	for _, want := range []struct{ name, holds string }{{"windows", "1 of 3000"}, {"calls", "DescribeLoadBalancers"}} {
		if name, html := next(t, lines); name != want.name || !strings.Contains(html, want.holds) {
			t.Errorf("after a call: event %s, want %s with %q", name, want.name, want.holds)
		}
	}
}

func TestConsoleIsForThisHost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	body, _ := s.fetch("/console/static/console.js")
	page, _ := s.fetch("/console/")
	for _, text := range []string{body, page} {
		if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Error("the console refers to another host")
		}
	}
}
