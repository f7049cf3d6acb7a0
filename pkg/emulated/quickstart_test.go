package emulated_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	"github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/emulated"
)

func TestQuickstart(t *testing.T) {
	t.Parallel()
	account := emulated.Start(t, emulated.Options{})
	key := credentials.NewAccessKeyCredential(account.AccessKeyID, account.AccessKeySecret)
	client, err := slb.NewClientWithOptions(account.Region, sdk.NewConfig().WithScheme("HTTP"), key)
	if err != nil {
		t.Fatal(err)
	}
	client.Domain = account.Host()
	if _, err := client.CreateLoadBalancer(slb.CreateCreateLoadBalancerRequest()); err != nil {
		t.Fatal(err)
	}
	if calls := account.Calls(); len(calls) != 1 || calls[0].Action != "CreateLoadBalancer" {
		t.Errorf("calls: %v", calls)
	}
}

// TestQuickstartIsTheGuides: the function above is what the guide shows.
func TestQuickstartIsTheGuides(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("quickstart_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go test=TestQuickstart\n")
	shown, _, _ := strings.Cut(rest, "```")
	_, shown, _ = strings.Cut(shown, "func TestQuickstart")
	_, run, _ := strings.Cut(string(code), "func TestQuickstart")
	if shown == "" || !strings.HasPrefix(run, shown) {
		t.Errorf("the guide shows\n%s", shown)
	}
}
