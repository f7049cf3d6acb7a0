package slb

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// Versions of the APIs that tests call as a user would.
const (
	versionSLB = "2014-05-15"
	versionVPC = "2016-04-28"
)

// raw makes a call that the client has no method for, as a person at the console would, and leaves it out of the count.
func (w *world) raw(version, action string, parameters map[string]string, into any) {
	w.t.Helper()
	all := map[string]string{
		"Action": action, "Version": version, "Format": "JSON", "RegionId": testRegion, "AccessKeyId": emulatortest.AccessKeyID, "SignatureMethod": "HMAC-SHA1",
		"SignatureVersion": "1.0", "SignatureNonce": rand.Text(), "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	maps.Copy(all, parameters)
	all["Signature"] = rpc.Sign(emulatortest.AccessKeySecret, http.MethodGet, all)
	query := url.Values{}
	for name, value := range all {
		query.Set(name, value)
	}
	w.calls()
	answer := w.emulator.Admin(http.MethodGet, "/?"+query.Encode(), "")
	w.calls()
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		w.t.Fatal(err)
	}
}
