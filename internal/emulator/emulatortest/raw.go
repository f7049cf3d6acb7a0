package emulatortest

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// Versions of the APIs that tests call as a user would.
const (
	VersionSLB = "2014-05-15"
	VersionVPC = "2016-04-28"
)

// Raw makes a call that the client has no method for, as a person at the console would. A nil into drops the answer.
func (c *Cloud) Raw(version, action string, parameters map[string]string, into any) {
	c.t.Helper()
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
	answer := c.Admin(http.MethodGet, "/?"+query.Encode(), "")
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		c.t.Fatal(err)
	}
}
