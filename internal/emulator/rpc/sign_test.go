package rpc

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// published is the example of https://alibabacloud.com/help/en/ram/common-parameters-2.
var published = api.Params{
	"AccessKeyId": "testid", "Action": "DescribeDedicatedHosts", "Format": "JSON", "RegionId": "cn-beijing",
	"SignatureMethod": "HMAC-SHA1", "SignatureNonce": "edb2b34af0af9a6d14deaf7c1a5315eb", "SignatureVersion": "1.0",
	"Timestamp": "2023-03-13T08:34:30Z", "Version": "2014-05-26",
}

func TestSign(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, want string
		extra              api.Params
	}{
		{"published", "GET", "9NaGiOspFP5UPcwX8Iwt2YJXXuk=", nil},
		{"POST", "POST", "ZvQ9xGiFnquSJRvj+WE6kdSpTwU=", nil},
		{"empty value", "GET", "UH9YZkJFJxStt4vBk2/uWn0aA9U=", api.Params{"SignatureType": ""}},
		{"token with reserved characters", "POST", "GPmaQ2Ihn5VkBxDUGblt1CVYLH8=",
			api.Params{"SignatureType": "", "SecurityToken": "sts+tok/en=~*"}},
		{"the signature does not sign itself", "GET", "9NaGiOspFP5UPcwX8Iwt2YJXXuk=", api.Params{"Signature": "x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := maps.Clone(published)
			maps.Copy(p, test.extra)
			if got := Sign("testsecret", test.method, p); got != test.want {
				t.Errorf("signature = %s, want %s", got, test.want)
			}
		})
	}
}

func TestStringToSign(t *testing.T) {
	t.Parallel()
	const want = "GET&%2F&AccessKeyId%3Dtestid%26Action%3DDescribeDedicatedHosts%26Format%3DJSON%26RegionId%3Dcn-beijing%26SignatureMethod%3DHMAC-SHA1%26SignatureNonce%3Dedb2b34af0af9a6d14deaf7c1a5315eb%26SignatureVersion%3D1.0%26Timestamp%3D2023-03-13T08%253A34%253A30Z%26Version%3D2014-05-26"
	if d := cmp.Diff(want, StringToSign("GET", published)); d != "" {
		t.Error(d)
	}
}

const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// vector3 is the example of https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature.
func vector3() *Request {
	h := http.Header{}
	for k, v := range map[string]string{
		"x-acs-action": "RunInstances", "x-acs-content-sha256": emptyDigest, "x-acs-date": "2023-10-26T10:22:32Z",
		"x-acs-signature-nonce": "3156853299f313e23d1673dc12e1703d", "x-acs-version": "2014-05-26",
		"Authorization": "ACS3-HMAC-SHA256 Credential=testid,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0",
	} {
		h.Set(k, v)
	}
	query := api.Params{"ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd", "RegionId": "cn-shanghai"}
	return &Request{Method: "POST", Path: "/", Host: "ecs.cn-shanghai.aliyuncs.com", Header: h, Query: query, Params: query}
}

func newVerifier() *Verifier {
	return &Verifier{Statuses: DefaultStatuses, Find: func(id string) (Key, bool) {
		return Key{ID: id, Secret: "YourAccessKeySecret"}, id == "testid"
	}}
}

func TestVerify3(t *testing.T) {
	t.Parallel()
	now := time.Date(2023, 10, 26, 10, 23, 0, 0, time.UTC)
	id, bad := newVerifier().Verify(vector3(), now)
	if bad != nil || id != "testid" {
		t.Fatalf("published vector: %s, %v", id, bad)
	}
	tests := []struct {
		name, code string
		edit       func(*Request)
	}{
		{"date changed", "SignatureDoesNotMatch", func(r *Request) { r.Header.Set("x-acs-date", "2023-10-26T09:22:32Z") }},
		{"query changed", "SignatureDoesNotMatch", func(r *Request) { r.Query = api.Params{"RegionId": "cn-beijing"} }},
		{"host changed", "SignatureDoesNotMatch", func(r *Request) { r.Host = "elsewhere" }},
		{"body changed", "InvalidParameter", func(r *Request) { r.Body = []byte("x") }},
		{"unsigned header", "IncompleteSignature", func(r *Request) { r.Header.Set("x-acs-security-token", "t") }},
		{"no date", "MissingParameter", func(r *Request) { r.Header.Del("x-acs-date") }},
		{"other scheme", "IncompleteSignature", func(r *Request) { r.Header.Set("Authorization", "Basic x") }},
		{"unknown key", "InvalidAccessKeyId.NotFound", func(r *Request) {
			r.Header.Set("Authorization",
				"ACS3-HMAC-SHA256 Credential=who,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=0")
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := vector3()
			test.edit(r)
			_, bad := newVerifier().Verify(r, now)
			if bad == nil || bad.Code != test.code {
				t.Errorf("answer = %v, want %s", bad, test.code)
			}
		})
	}
	v := newVerifier()
	for i, want := range []string{"", "SignatureNonceUsed"} {
		_, bad := v.Verify(vector3(), now)
		if (bad == nil) != (want == "") {
			t.Errorf("use %d: %v, want %q", i, bad, want)
		}
	}
	if _, bad := newVerifier().Verify(vector3(), now.Add(time.Hour)); bad == nil || bad.Code != "IllegalTimestamp" {
		t.Errorf("an hour later: %v", bad)
	}
}

func TestNoncesForget(t *testing.T) {
	t.Parallel()
	var n Nonces
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if !n.Use("a", now) || n.Use("a", now.Add(2*Window)) {
		t.Error("a nonce is usable twice while its timestamp is valid")
	}
	n.Use("b", now.Add(2*Window+time.Second))
	if n.Use("a", now.Add(2*Window+time.Second)) {
		t.Error("the younger generation is forgotten too soon")
	}
	n.Use("c", now.Add(5*Window))
	if len(n.current)+len(n.previous) != 2 {
		t.Errorf("%d nonces are kept, want 2", len(n.current)+len(n.previous))
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	if got, want := Escape("a b*c~d+e/é-_."), "a%20b%2Ac~d%2Be%2F%C3%A9-_."; got != want {
		t.Errorf("Escape = %s, want %s", got, want)
	}
}
