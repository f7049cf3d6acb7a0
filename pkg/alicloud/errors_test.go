package alicloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	sdkerrors "github.com/aliyun/alibaba-cloud-sdk-go/sdk/errors"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	classes := map[string]func(error) bool{
		"not found": IsNotFound, "busy": IsBusy, "throttled": IsThrottled, "quota": IsQuota, "duplicate": IsDuplicate,
		"auth": IsAuth, "forbidden": IsForbidden, "ambiguous": IsAmbiguous,
	}
	tests := []struct {
		code   string
		status int
		want   string // the one class, or none
	}{
		{"InvalidLoadBalancerId.NotFound", 404, "not found"},
		{"InvalidParameter", 404, "not found"}, // an unknown vServer group
		{"InvalidParameter", 400, ""},
		{"ServiceIsStopping", 409, "busy"},
		{"SystemBusy", 449, "busy"},
		{"IncorrcetRouteEntryStatus", 400, "busy"},
		{"OperationFailed.DistibuteLock", 400, "busy"},
		{"TaskConflict", 400, "busy"},
		{"Throttling", 400, "throttled"},
		{"Throttling.User", 400, "throttled"},
		{"ThrottlingX", 400, ""},
		{"QuotaExceeded", 400, "quota"},
		{"VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE", 200, "duplicate"},
		{"SignatureDoesNotMatch", 400, "auth"},
		{"InvalidAccessKeyId.NotFound", 404, "auth"},
		{"Forbidden.RAM", 403, "forbidden"},
		{"Forbbiden.SubUser", 403, "forbidden"},
		{"InternalError", 500, "ambiguous"},
		{"SomethingNew", 503, "ambiguous"},
		{"SomethingNew", 400, ""},
		{"", 0, "ambiguous"},
	}
	for _, test := range tests {
		err := fmt.Errorf("while testing: %w", &Error{Action: "X", Code: test.code, Status: test.status, err: context.DeadlineExceeded})
		for class, is := range classes {
			if got, want := is(err), class == test.want; got != want {
				t.Errorf("%q with status %d: %s = %t, want %t", test.code, test.status, class, got, want)
			}
		}
	}
}

func TestClassesOfOtherErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("Throttling.User"), context.Canceled} {
		if IsNotFound(err) || IsBusy(err) || IsThrottled(err) || IsAuth(err) || IsAmbiguous(err) || HasCode(err, "Throttling.User") {
			t.Errorf("%v has a class", err)
		}
	}
}

func TestAsErrorDropsSignedText(t *testing.T) {
	t.Parallel()
	const token = "SECURITY-TOKEN"
	body := `{"RequestId":"R1","HostId":"h","Code":"SignatureDoesNotMatch","Message":"server string to sign is:POST&SecurityToken%3D` + token +
		`"}`
	tests := map[string]error{
		"server":    sdkerrors.NewServerError(400, body, ""),
		"transport": &url.Error{Op: "Post", URL: "https://slb.aliyuncs.com/?SecurityToken=" + token, Err: context.DeadlineExceeded},
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := asError("DescribeInstances", raw)
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error shows signed text: %v", err)
			}
			if !strings.Contains(err.Error(), "DescribeInstances") {
				t.Errorf("the error does not name the action: %v", err)
			}
		})
	}
}

// TestLasting: what the cloud answers twice to the same call is one text, also where the error is wrapped.
func TestLasting(t *testing.T) {
	t.Parallel()
	answer := func(request string) error {
		return fmt.Errorf("create: %w; why", &Error{Action: "A", Code: "C", Message: "M", Status: 400, RequestID: request})
	}
	if text := Lasting(answer("1")); text != "create: A: C: M (HTTP 400); why" || text != Lasting(answer("2")) {
		t.Errorf("text %q", text)
	}
	if text := Lasting(errors.New("other")); text != "other" {
		t.Errorf("text %q of an error that is none of the cloud's", text)
	}
}

func TestAsErrorKeepsWhatSupportNeeds(t *testing.T) {
	t.Parallel()
	raw := sdkerrors.NewServerError(400, `{"RequestId":"R1","HostId":"h","Code":"TaskConflict","Message":"too frequent"}`, "")
	err := asError("CreateRouteEntries", raw)
	if got, want := err.Error(), "CreateRouteEntries: TaskConflict: too frequent (HTTP 400, request R1)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if err := asError("X", &url.Error{Op: "Post", Err: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap its cause", err)
	}
}
