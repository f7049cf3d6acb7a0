package emulatortest

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// CLI makes the call that a command of the vendor's command line (aliyun PRODUCT ACTION --Name value …) makes, and returns the code of its
// error, empty if it succeeds.
func (c *Cloud) CLI(command string) (code string) {
	c.t.Helper()
	fields := strings.Fields(command)
	if len(fields) < 3 || fields[0] != "aliyun" {
		c.t.Fatalf("command %q", command)
	}
	version := map[string]string{"slb": api.VersionSLB, "vpc": api.VersionVPC, "nlb": api.VersionNLB, "ecs": api.VersionECS}[fields[1]]
	parameters := map[string]string{}
	for i := 3; i+1 < len(fields); i += 2 {
		parameters[strings.TrimPrefix(fields[i], "--")] = strings.Trim(fields[i+1], "'")
	}
	var answer struct{ Code string }
	if err := json.Unmarshal(c.ask(http.MethodGet, signed(version, fields[2], parameters), "").Body.Bytes(), &answer); err != nil {
		c.t.Fatal(err)
	}
	return answer.Code
}

// Raw makes a call that the client has no method for, as a person at the console would. A nil into drops the answer.
func (c *Cloud) Raw(version, action string, parameters map[string]string, into any) {
	c.t.Helper()
	answer := c.Admin(http.MethodGet, signed(version, action, parameters), "")
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		c.t.Fatal(err)
	}
}

// signed returns path and query of a call.
func signed(version, action string, parameters map[string]string) string {
	all := map[string]string{
		"Action": action, "Version": version, "Format": "JSON", "RegionId": Region, "AccessKeyId": AccessKeyID, "SignatureMethod": "HMAC-SHA1",
		"SignatureVersion": "1.0", "SignatureNonce": rand.Text(), "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	maps.Copy(all, parameters)
	all["Signature"] = rpc.Sign(AccessKeySecret, http.MethodGet, all)
	query := url.Values{}
	for name, value := range all {
		query.Set(name, value)
	}
	return "/?" + query.Encode()
}
