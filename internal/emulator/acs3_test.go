package emulator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// headers3 signs a request with ACS3 headers, in the flat form that send takes.
func headers3(method, host, action, version, nonce, body string, query api.Params) []string {
	sum := sha256.Sum256([]byte(body))
	digest := hex.EncodeToString(sum[:])
	h := http.Header{}
	flat := []string{
		"x-acs-action", action, "x-acs-version", version, "x-acs-date", time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"x-acs-signature-nonce", nonce, "x-acs-content-sha256", digest, "content-type", "application/x-www-form-urlencoded",
	}
	for i := 0; i < len(flat); i += 2 {
		h.Set(flat[i], flat[i+1])
	}
	names := []string{"content-type", "host", "x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-signature-nonce", "x-acs-version"}
	text := rpc.CanonicalRequest(method, "/", query, h, host, names, digest)
	return append(flat, "Authorization", "ACS3-HMAC-SHA256 Credential=emulator,SignedHeaders="+strings.Join(names, ";")+
		",Signature="+rpc.Sign3("emulator-secret", text))
}

func TestACS3(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, emulator.Options{})
	query := api.Params{"RegionId": region, "VpcId": "vpc-emulator"}
	status, body := send(e, "POST", "http://vpc.test/?"+encode(query), "",
		headers3("POST", "vpc.test", "DescribeVpcs", "2016-04-28", "1", "", query)...)
	wantEqual(t, "query", []any{status, strings.HasPrefix(body, `{"RequestId":`)}, []any{200, true})
	form := encode(api.Params{"VSwitchId": "vsw-a"})
	status, _ = send(e, "POST", "http://vpc.test/", form,
		headers3("POST", "vpc.test", "DescribeVSwitchAttributes", "2016-04-28", "2", form, nil)...)
	wantEqual(t, "form body", status, 200)
	status, body = send(e, "POST", "http://vpc.test/", form+"x",
		headers3("POST", "vpc.test", "DescribeVSwitchAttributes", "2016-04-28", "3", form, nil)...)
	wantEqual(t, "changed body", []any{status, code(t, body)}, []any{400, "InvalidParameter"})
	status, body = send(e, "POST", "http://other.test/?"+encode(query), "",
		headers3("POST", "vpc.test", "DescribeVpcs", "2016-04-28", "4", "", query)...)
	wantEqual(t, "another host", []any{status, code(t, body)}, []any{400, "SignatureDoesNotMatch"})
	// The client was given the prefix as a part of its endpoint and signs the path /.
	status, _ = send(e, "POST", "http://vpc.test/vpc?"+encode(query), "",
		headers3("POST", "vpc.test", "DescribeVpcs", "2016-04-28", "5", "", query)...)
	wantEqual(t, "prefix", status, 200)
}
