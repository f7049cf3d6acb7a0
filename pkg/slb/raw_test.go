package slb

import (
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"time"

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
		"Action": action, "Version": version, "Format": "JSON", "RegionId": testRegion, "AccessKeyId": "emulator", "SignatureMethod": "HMAC-SHA1",
		"SignatureVersion": "1.0", "SignatureNonce": rand.Text(), "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	maps.Copy(all, parameters)
	all["Signature"] = rpc.Sign("emulator-secret", http.MethodGet, all)
	query := url.Values{}
	for name, value := range all {
		query.Set(name, value)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/?"+query.Encode(), http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	w.send(request, into)
	w.calls()
}
