package alicloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// brokenCloud returns a client of an endpoint that answers every call with what answer returns.
func brokenCloud(t *testing.T, answer func(r *http.Request) (status int, body string)) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body) //nolint:errcheck // a test
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	client, err := New(Options{
		Region: "cn-hangzhou", Credentials: StaticCredentials{AccessKeyID: "k", AccessKeySecret: "s"},
		Endpoints: Endpoints{PlainHTTP: true, SLB: address, NLB: address, VPC: address, ECS: address},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestTextsOfTheCloudAreBounded: what a broken endpoint sends neither fills the log nor acts on the terminal of whoever reads it.
func TestTextsOfTheCloudAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50_000)
	client := brokenCloud(t, func(*http.Request) (int, string) {
		return http.StatusBadRequest,
			`{"RequestId":"r` + long + `","Code":"Odd.\u001b[2J` + long + `","Message":"a\nI1127 forged\u001b]0;title\u0007` + long + `"}`
	})
	_, err := client.DescribeLoadBalancer(t.Context(), "lb-1")
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if text := err.Error(); len(text) > 4*maxText || strings.ContainsAny(text, "\n\x1b\x07") ||
		!strings.Contains(text, `a\nI1127 forged\x1b]0;title\a`) {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

// TestWhatIsNoAnswerIsBounded: the same of what is no HTTP, of which the error of the transport has the text.
func TestWhatIsNoAnswerIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // it is one
		if err != nil {
			return
		}
		defer conn.Close()                                                                              //nolint:errcheck // a test
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\x1b]0;title\x07"+strings.Repeat("x", 100_000)+"\r\n\r\n") //nolint:errcheck // a test
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	client, err := New(Options{Region: "cn-hangzhou", Credentials: StaticCredentials{AccessKeyID: "k", AccessKeySecret: "s"},
		Endpoints: Endpoints{PlainHTTP: true, SLB: address}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.DescribeLoadBalancer(t.Context(), "lb-1")
	if text := fmt.Sprint(err); err == nil || len(text) > 2*maxText || strings.ContainsAny(text, "\n\x1b\x07") {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

// TestListsEnd: a list that has always one more page, or that has the same page again, is an error after a bounded number of calls.
func TestListsEnd(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	page := func(ids func(n int32) string, total int) *Client {
		calls.Store(0)
		return brokenCloud(t, func(*http.Request) (int, string) {
			n := calls.Add(1)
			return http.StatusOK,
				fmt.Sprintf(`{"RequestId":"r","TotalCount":%d,"PageNumber":1,"PageSize":50,"LoadBalancers":{"LoadBalancer":[{"LoadBalancerId":"lb-%s"}]}}`, total, ids(n))
		})
	}
	list := func(client *Client) error {
		_, err := client.DescribeLoadBalancers(context.Background(), LoadBalancerQuery{})
		return err
	}
	if err := list(page(func(int32) string { return "1" }, 1_000_000_000)); err == nil || calls.Load() > 2*listAttempts {
		t.Errorf("the same page again: %v after %d calls", err, calls.Load())
	}
	if err := list(page(func(int32) string { return "1" }, 2)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the same page again, and the count fits: %v", err)
	}
	if err := list(page(func(n int32) string { return fmt.Sprint(n) }, 1_000_000_000)); err == nil || calls.Load() > maxPages {
		t.Errorf("another page each time: %v after %d calls", err, calls.Load())
	}
}
