package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// callers keeps connections for some that call at once.
var callers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// Call makes a call of the cloud at a URL as a person does, and not the manager, and returns the answer. Nothing limits its rate.
func Call(ctx context.Context, at, version, action string, more map[string]string) ([]byte, error) {
	params := api.Params{
		"Action": action, "Version": version, "RegionId": Region, "Format": "JSON",
		"AccessKeyId": AccessKeyID, "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": rand.Text(),
		"Timestamp": time.Now().UTC().Format(time.RFC3339),
	}
	maps.Copy(params, more)
	params["Signature"] = rpc.Sign(AccessKeySecret, http.MethodGet, params)
	query := url.Values{}
	for key, value := range params {
		query.Set(key, value)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := callers.Do(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s: %s", action, response.Status, answer)
	}
	return answer, nil
}
