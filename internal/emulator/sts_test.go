package emulator_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"
	"github.com/golang-jwt/jwt/v5"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const (
	roleARN     = "acs:ram::1234567890123456:role/emulator-role"
	providerARN = "acs:ram::1234567890123456:oidc-provider/emulator"
)

// temporary is the answer of the assume calls.
type temporary struct {
	Credentials   struct{ AccessKeyId, AccessKeySecret, SecurityToken, Expiration string }
	OIDCTokenInfo struct{ Subject string }
}

func readTemporary(t *testing.T, body string) temporary {
	t.Helper()
	var v temporary
	testkit.Must(0, json.Unmarshal([]byte(body), &v))(t)
	return v
}

func TestAssumeRole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.Roles[0].Permissions = []string{"slb:Describe*", "sts:*"}
		a := newBubble(t, emulator.Options{Config: config})
		body := testkit.Must(a.call("sts", "AssumeRole",
			map[string]string{"RoleArn": roleARN, "RoleSessionName": "test", "DurationSeconds": "900"}))(t)
		key := readTemporary(t, body).Credentials
		client, err := slbapi.NewClientWithOptions(region, sdkConfig(direct{a.Handler()}),
			credentials.NewStsTokenCredential(key.AccessKeyId, key.AccessKeySecret, key.SecurityToken))
		testkit.Must(0, err)(t)
		client.Domain = "emulator.test"
		list := slbapi.CreateDescribeLoadBalancersRequest()
		testkit.Must(client.DescribeLoadBalancers(list))(t)
		_, err = client.CreateLoadBalancer(slbapi.CreateCreateLoadBalancerRequest())
		wantCode(t, err, "Forbidden.RAM", 403)
		time.Sleep(15 * time.Minute)
		_, err = client.DescribeLoadBalancers(list)
		wantCode(t, err, "InvalidSecurityToken.Expired", 403)

		body = testkit.Must(a.call("sts", "GetCallerIdentity", nil))(t)
		var who struct{ IdentityType, Arn string }
		testkit.Must(0, json.Unmarshal([]byte(body), &who))(t)
		wantEqual(t, "identity", who.Arn, "acs:ram::1234567890123456:user/emulator")
		for code, params := range map[string]map[string]string{
			"EntityNotExist.Role":              {"RoleArn": "acs:ram::1:role/x", "RoleSessionName": "test"},
			"InvalidParameter.DurationSeconds": {"RoleArn": roleARN, "RoleSessionName": "test", "DurationSeconds": "899"},
			"InvalidParameter.RoleSessionName": {"RoleArn": roleARN, "RoleSessionName": "a b"},
		} {
			_, err := a.call("sts", "AssumeRole", params)
			status := 400
			if code == "EntityNotExist.Role" {
				status = 404
			}
			wantCode(t, err, code, status)
		}
	})
}

func TestAssumeRoleWithOIDC(t *testing.T) {
	t.Parallel()
	private := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	stranger := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := testkit.Must(x509.MarshalPKIXPublicKey(private.Public()))(t)
	config := cloud.DefaultConfig()
	config.OIDCProviders[0].Issuer = "https://issuer.test"
	config.OIDCProviders[0].Keys = []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
	config.Roles[0].Subjects = []string{"system:serviceaccount:kube-system:ccm"}
	a := newAccount(t, emulator.Options{Config: config})
	token := func(key *ecdsa.PrivateKey, edit func(*jwt.RegisteredClaims)) string {
		c := &jwt.RegisteredClaims{
			Issuer: "https://issuer.test", Subject: "system:serviceaccount:kube-system:ccm", Audience: jwt.ClaimStrings{"sts.aliyuncs.com"},
			ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)), IssuedAt: jwt.NewNumericDate(time.Now()),
		}
		if edit != nil {
			edit(c)
		}
		return testkit.Must(jwt.NewWithClaims(jwt.SigningMethodES256, c).SignedString(key))(t)
	}
	assume := func(token, provider string) (int, string) {
		form := encode(map[string]string{"RoleArn": roleARN, "OIDCProviderArn": provider, "OIDCToken": token, "RoleSessionName": "ccm"})
		// As the credentials library sends it: no key, no signature.
		return send(a.Emulator, "POST", "/?Action=AssumeRoleWithOIDC&Version=2015-04-01&Format=JSON&Timestamp=2026-01-01T00%3A00%3A00Z", form,
			"Content-Type", "application/x-www-form-urlencoded")
	}
	status, body := assume(token(private, nil), providerARN)
	got := readTemporary(t, body)
	wantEqual(t, "assumed", []any{status, got.OIDCTokenInfo.Subject, got.Credentials.SecurityToken != ""},
		[]any{200, "system:serviceaccount:kube-system:ccm", true})
	// As the newer SDK sends it: the action in a header.
	form := encode(map[string]string{"RoleArn": roleARN, "OIDCProviderArn": providerARN, "OIDCToken": token(private, nil),
		"RoleSessionName": "ccm"})
	status, body = send(a.Emulator, "POST", "/", form, "Content-Type", "application/x-www-form-urlencoded",
		"x-acs-action", "AssumeRoleWithOIDC", "x-acs-version", "2015-04-01", "Accept", "application/json")
	wantEqual(t, "by headers: "+body, []any{status, strings.HasPrefix(body, "{")}, []any{200, true})
	const fail = "AuthenticationFail."
	tests := []struct{ name, token, provider, code string }{
		{"signature", token(stranger, nil), providerARN, fail + "OIDCToken.InvalidSignature"},
		{"audience", token(private, func(c *jwt.RegisteredClaims) {
			c.Audience = jwt.ClaimStrings{"kubernetes"}
		}), providerARN, fail + "OIDCToken.AudienceNotMatch"},
		{"expired", token(private, func(c *jwt.RegisteredClaims) {
			c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(-time.Second))
		}), providerARN, fail + "OIDCToken.Expired"},
		{"issuer", token(private, func(c *jwt.RegisteredClaims) { c.Issuer = "https://elsewhere" }), providerARN, fail + "OIDCToken.Invalid"},
		{"subject", token(private, func(c *jwt.RegisteredClaims) {
			c.Subject = "system:serviceaccount:default:x"
		}), providerARN, fail + "NoPermission"},
		{"no token", "not.a.token", providerARN, fail + "OIDCToken.Invalid"},
		{"provider", token(private, nil), "acs:ram::1:oidc-provider/x", fail + "NoPermission"},
	}
	for _, test := range tests {
		status, body := assume(test.token, test.provider)
		wantEqual(t, test.name, []any{status, code(t, body)}, []any{401, test.code})
	}
	// Issuers date tokens by their own clock: setting that of the cloud forward does not lock their holders out.
	testkit.Must(0, a.Advance(2*time.Hour))(t)
	status, _ = assume(token(private, nil), providerARN)
	wantEqual(t, "with the clock of the cloud ahead", status, 200)
	for _, c := range a.Calls(0) {
		wantEqual(t, "token in the journal", c.Parameters["OIDCToken"], "***")
	}
}
