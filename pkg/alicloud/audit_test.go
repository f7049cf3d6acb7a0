package alicloud_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	jsonlog "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestEveryWriteIsLogged: at the default verbosity there is one line for each write, and none for reads and refusals; no line has a secret.
func TestEveryWriteIsLogged(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := klog.NewContext(context.WithoutCancel(t.Context()), logger.WithValues("service", "default/web"))
	lb, err := c.CreateLoadBalancer(ctx, alicloud.LoadBalancer{Name: "mine", AddressType: alicloud.AddressInternet}, "token")
	if err != nil {
		t.Fatal(err)
	}
	if err = c.SetLoadBalancerName(ctx, lb.ID, "other"); err != nil {
		t.Fatal(err)
	}
	if _, err = c.DescribeLoadBalancer(ctx, lb.ID); err != nil {
		t.Fatal(err)
	}
	if err = c.DeleteLoadBalancer(ctx, "lb-none"); err == nil {
		t.Fatal("a CLB that does not exist was deleted")
	}
	if len(lines) != 2 {
		t.Fatalf("lines %q, want one for each write that changed something", lines)
	}
	for i, want := range []string{"CreateLoadBalancer", "SetLoadBalancerName"} {
		for _, part := range []string{want, `"service"="default/web"`, `"requestID"="`, `"result"="done"`} {
			if !strings.Contains(lines[i], part) || strings.Contains(lines[i], `"requestID"=""`) {
				t.Errorf("line %s lacks %s", lines[i], part)
			}
		}
		if strings.Contains(lines[i], emulatortest.AccessKeySecret) {
			t.Errorf("line %s has the secret", lines[i])
		}
	}
}

// TestWritesAreLoggedAsJSON: with --logging-format=json, a line is one object whose fields have names of their own, as
// docs/reference/logs.md says.
func TestWritesAreLoggedAsJSON(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	var out unbuffered
	logger, control := jsonlog.NewJSONLogger(0, &out, nil, nil)
	ctx := klog.NewContext(context.WithoutCancel(t.Context()), logger.WithValues("service", "default/web"))
	if _, err := c.CreateLoadBalancer(ctx, alicloud.LoadBalancer{Name: "mine", AddressType: alicloud.AddressInternet}, "token"); err != nil {
		t.Fatal(err)
	}
	control.Flush()
	var line map[string]any
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	for name, want := range map[string]any{
		"msg": alicloud.WriteMessage, "v": 0.0, "service": "default/web", "action": "CreateLoadBalancer", "LoadBalancerName": "mine",
		"result": "done",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	for _, name := range []string{"ts", "caller", "requestID"} {
		if line[name] == nil {
			t.Errorf("the line has no %s: %s", name, out.String())
		}
	}
}

// unbuffered is a stream that has nothing to write at the end.
type unbuffered struct{ strings.Builder }

func (*unbuffered) Sync() error { return nil }
