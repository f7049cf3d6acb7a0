package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// caller sends signed calls to the emulator with nothing in between: no SDK, no rate limit.
type caller struct {
	url    string
	client *http.Client
	nonces atomic.Int64
	prefix string // of nonces, so that those of several callers differ
}

// newCaller makes a caller with at most so many connections.
func newCaller(url, prefix string, connections int) *caller {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	return &caller{url: url, client: &http.Client{Transport: transport}, prefix: prefix}
}

// answer holds those parts of answers that somebody here needs.
type answer struct {
	Code, Message  string
	LoadBalancerID string `json:"LoadBalancerId"`
	VServerGroupID string `json:"VServerGroupId"`
	ServerGroupID  string `json:"ServerGroupId"`
	Address        string
	VServerGroups  struct {
		VServerGroup []struct {
			ID   string `json:"VServerGroupId"`
			Name string `json:"VServerGroupName"`
		}
	}
	ServerGroups []struct {
		ID   string `json:"ServerGroupId"`
		Name string `json:"ServerGroupName"`
	}
}

// call makes one call. It signs a copy of params.
func (c *caller) call(ctx context.Context, params api.Params) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(c.sign(params)))
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", params["Action"], err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.client.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", params["Action"], err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, fmt.Errorf("%s: %w", params["Action"], err)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{}, fmt.Errorf("%s: decode the answer: %w", params["Action"], err)
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("%s: %s: %s", params["Action"], a.Code, a.Message)
	}
	return a, nil
}

// sign completes the parameters by what every call has and returns them as a form.
func (c *caller) sign(params api.Params) string {
	full := api.Params{
		"Version": api.VersionOf(productCLB), "RegionId": cluster.Region, "Format": "JSON", "AccessKeyId": cluster.AccessKeyID,
		"SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": c.prefix + strconv.FormatInt(c.nonces.Add(1), 10),
		"Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	for name, value := range params {
		full[name] = value
	}
	full["Signature"] = rpc.Sign(cluster.AccessKeySecret, http.MethodPost, full)
	form := url.Values{}
	for name, value := range full {
		form.Set(name, value)
	}
	return form.Encode()
}

// close gives the connections up.
func (c *caller) close() { c.client.CloseIdleConnections() }
