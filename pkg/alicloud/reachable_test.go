package alicloud

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a cloud that gives each call the answer, or none.
type answering struct {
	status int
	body   string
}

func (a *answering) RoundTrip(request *http.Request) (*http.Response, error) {
	if a.status == 0 {
		return nil, errors.New("connection refused")
	}
	recorded := &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: request}
	recorded.Body = http.NoBody
	if a.body != "" {
		recorded.Body = readCloser{strings.NewReader(a.body)}
	}
	return recorded, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestReachable: the cloud counts as unreachable after a minute without any success, and not because of a resource that does not exist.
func TestReachable(t *testing.T) {
	t.Parallel()
	refused := func(code string) answering {
		return answering{http.StatusBadRequest, `{"RequestId": "1", "Code": "` + code + `", "Message": "no"}`}
	}
	for name, test := range map[string]struct {
		answer    answering
		reachable bool
	}{
		"no answer": {answering{}, false}, "not an answer of the cloud": {answering{http.StatusBadGateway, "<html>"}, false},
		"key refused": {refused("InvalidAccessKeyId.NotFound"), false}, "throttled": {refused("Throttling"), true},
		"forbidden": {refused("Forbidden.RAM"), true}, "no such resource": {refused("InvalidVpcId.NotFound"), true},
		"success": {answering{http.StatusOK, `{"RequestId": "1", "Vpcs": {"Vpc": []}}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := &answering{}
				client, err := New(Options{
					Region: "cn-hangzhou", Credentials: StaticCredentials{AccessKeyID: "id", AccessKeySecret: "secret"}, Transport: cloud,
					Endpoints: Endpoints{PlainHTTP: true, VPC: "cloud"},
				})
				if err != nil {
					t.Fatal(err)
				}
				call := func() { _, _ = client.DescribeVPCBlocks(context.Background(), "vpc-1") } //nolint:usetesting // the outcome is what counts
				if err := client.Reachable(); err != nil {
					t.Errorf("before the first call: %v", err)
				}
				call()
				if err := client.Reachable(); err != nil {
					t.Errorf("after one failure: %v", err)
				}
				time.Sleep(unreachableAfter)
				*cloud = test.answer
				call()
				if err := client.Reachable(); (err == nil) != test.reachable {
					t.Errorf("a minute later: %v, want reachable %v", err, test.reachable)
				}
			})
		})
	}
}

// TestQuotaCenterOutOfReach: a network without a way to the Quota Center does not make the cloud count as unreachable.
func TestQuotaCenterOutOfReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := New(Options{
			Region: "cn-hangzhou", Credentials: StaticCredentials{AccessKeyID: "id", AccessKeySecret: "secret"}, Transport: &answering{},
			Endpoints: Endpoints{PlainHTTP: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := client.ListProductQuotas(t.Context(), QuotasOfCLB); err == nil {
				t.Error("quotas without an answer")
			}
			time.Sleep(2 * unreachableAfter)
		}
		if err := client.Reachable(); err != nil {
			t.Errorf("the cloud counts as unreachable: %v", err)
		}
	})
}
