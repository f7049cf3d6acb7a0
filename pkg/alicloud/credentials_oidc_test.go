package alicloud_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/golang-jwt/jwt/v5"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	roleARN     = "acs:ram::1234567890123456:role/emulator-role"
	providerARN = "acs:ram::1234567890123456:oidc-provider/emulator"
	audience    = "sts.aliyuncs.com"
)

// trustedCloud is an emulated cloud that knows the cluster's issuer and checks its signatures.
type trustedCloud struct {
	*testing.T
	emu       *emulatortest.Cloud
	key       *ecdsa.PrivateKey
	tokenFile string
	transport *http.Transport
}

func newTrustedCloud(t *testing.T) *trustedCloud {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Check(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	testkit.Check(t, err)
	config := cloud.DefaultConfig()
	config.OIDCProviders[0].Issuer = "https://kubernetes.default.svc"
	config.OIDCProviders[0].Keys = []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
	c := &trustedCloud{
		T: t, emu: emulatortest.New(t, emulator.Options{Config: config}), key: key, tokenFile: filepath.Join(t.TempDir(), "token"),
		transport: &http.Transport{},
	}
	c.emu.URL() // so that the server closes after its client
	t.Cleanup(c.transport.CloseIdleConnections)
	c.writeToken(nil)
	return c
}

// writeToken does what the kubelet does when it rotates the projected token.
func (c *trustedCloud) writeToken(change func(*jwt.RegisteredClaims)) (token string) {
	c.Helper()
	claims := &jwt.RegisteredClaims{
		Issuer: "https://kubernetes.default.svc", Subject: "system:serviceaccount:kube-system:cloud-controller-manager",
		Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)), IssuedAt: jwt.NewNumericDate(time.Now()),
	}
	if change != nil {
		change(claims)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(c.key)
	testkit.Check(c.T, err)
	testkit.Check(c.T, os.WriteFile(c.tokenFile, []byte(token+"\n"), 0o600))
	return token
}

func (c *trustedCloud) endpoints() alicloud.Endpoints {
	url := c.emu.URL()
	return alicloud.Endpoints{SLB: url, VPC: url, ECS: url, STS: url, PlainHTTP: true}
}

func (c *trustedCloud) provider() *alicloud.TemporaryCredentials {
	return alicloud.NewOIDCCredentials(alicloud.OIDCOptions{
		RoleARN: roleARN, ProviderARN: providerARN, TokenFile: c.tokenFile, SessionName: "cloud-controller-manager",
		Region: "cn-hangzhou", Endpoints: c.endpoints(), Transport: c.transport,
	})
}

func (c *trustedCloud) client(provider alicloud.CredentialsProvider) *alicloud.Client {
	c.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: "cn-hangzhou", Credentials: provider, Endpoints: c.endpoints(), Transport: c.transport,
	})
	testkit.Check(c.T, err)
	return client
}

func TestOIDCSession(t *testing.T) {
	t.Parallel()
	c := newTrustedCloud(t)
	client := c.client(c.provider())
	for range 3 {
		if vSwitches := testkit.Must(client.DescribeVSwitches(t.Context(), "vpc-emulator"))(t); len(vSwitches) != 2 {
			t.Errorf("%d vSwitches, want 2", len(vSwitches))
		}
	}
	if got := c.emu.Count(0, "AssumeRoleWithOIDC"); got != 1 {
		t.Errorf("%d sessions for three calls, want 1", got)
	}
}

// TestExpiredKeyIsReplacedOnce: a refused key costs one new session and one retry, and a second refusal is the answer.
func TestExpiredKeyIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"InvalidSecurityToken.Expired", "InvalidSecurityToken.Malformed", "InvalidAccessKeyId.NotFound"} {
		for _, times := range []string{"1", "2"} {
			c := newTrustedCloud(t)
			client := c.client(c.provider())
			c.emu.Fault(`{"action":"DescribeVSwitches","code":"` + code + `","status":403,"times":` + times + `}`)
			_, err := client.DescribeVSwitches(t.Context(), "vpc-emulator")
			if refused := times == "2"; alicloud.HasCode(err, code) != refused || (err != nil) != refused {
				t.Errorf("%s, %s times: error %v", code, times, err)
			}
			if calls, sessions := c.emu.Count(0, "DescribeVSwitches"), c.emu.Count(0, "AssumeRoleWithOIDC"); calls != 2 || sessions != 2 {
				t.Errorf("%s, %s times: %d calls and %d sessions, want 2 and 2", code, times, calls, sessions)
			}
		}
	}
}

// TestExpiredKeyWithoutAnother: the refusal stays the answer, with the reason why there is no other key.
func TestExpiredKeyWithoutAnother(t *testing.T) {
	t.Parallel()
	c := newTrustedCloud(t)
	client := c.client(c.provider())
	testkit.Must(client.DescribeVSwitches(t.Context(), "vpc-emulator"))(t)
	testkit.Check(t, os.Remove(c.tokenFile))
	c.emu.Fault(`{"action":"DescribeVSwitches","code":"InvalidSecurityToken.Expired","status":403}`)
	_, err := client.DescribeVSwitches(t.Context(), "vpc-emulator")
	if !alicloud.IsAuth(err) || alicloud.IsNoCredentials(err) || !strings.Contains(err.Error(), c.tokenFile) {
		t.Errorf("error %v, want the refusal and the missing file", err)
	}
}

func TestStaticKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	c := newTrustedCloud(t)
	client := c.client(alicloud.StaticCredentials{AccessKeyID: "nobody", AccessKeySecret: "s"})
	if _, err := client.DescribeVSwitches(t.Context(), "vpc-emulator"); !alicloud.IsAuth(err) {
		t.Errorf("error %v, want a refused key", err)
	}
	if got := c.emu.Count(0, "DescribeVSwitches"); got != 1 {
		t.Errorf("%d calls, want 1", got)
	}
}

func TestOIDCFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks    func(*trustedCloud)
		want      string
		temporary bool
	}{
		"token file missing": {func(c *trustedCloud) { testkit.Check(c.T, os.Remove(c.tokenFile)) }, "no such file", false},
		"token file empty":   {func(c *trustedCloud) { testkit.Check(c.T, os.WriteFile(c.tokenFile, nil, 0o600)) }, "0 characters", false},
		"token expired": {func(c *trustedCloud) {
			c.writeToken(func(r *jwt.RegisteredClaims) { r.ExpiresAt = jwt.NewNumericDate(time.Unix(1, 0)) })
		}, "OIDCToken.Expired", false},
		"audience": {func(c *trustedCloud) {
			c.writeToken(func(r *jwt.RegisteredClaims) { r.Audience = jwt.ClaimStrings{"kubernetes"} })
		}, "AudienceNotMatch", false},
		"signature": {func(c *trustedCloud) { c.key = newKey(c.T); c.writeToken(nil) }, "InvalidSignature", false},
		"STS throttled": {func(c *trustedCloud) {
			c.emu.Fault(`{"action":"AssumeRoleWithOIDC","code":"Throttling.User"}`)
		}, "Throttling.User", true},
		"STS down": {func(c *trustedCloud) {
			c.emu.Fault(`{"action":"AssumeRoleWithOIDC","code":"ServiceUnavailable","status":503}`)
		}, "ServiceUnavailable", true},
		"STS answer lost":     {func(c *trustedCloud) { c.emu.Fault(`{"action":"AssumeRoleWithOIDC","drop":"after"}`) }, "no answer", true},
		"STS request dropped": {func(c *trustedCloud) { c.emu.Fault(`{"action":"AssumeRoleWithOIDC","drop":"before"}`) }, "no answer", true},
	} {
		c := newTrustedCloud(t)
		test.breaks(c)
		client := c.client(c.provider())
		_, err := client.DescribeVSwitches(t.Context(), "vpc-emulator")
		var none *alicloud.CredentialsError
		if !errors.As(err, &none) || none.IsTemporary() != test.temporary || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one that says %q, temporary %t", name, err, test.want, test.temporary)
			continue
		}
		if alicloud.IsNotFound(err) || alicloud.IsAmbiguous(err) || alicloud.IsThrottled(err) || c.emu.Count(0, "DescribeVSwitches") != 0 {
			t.Errorf("%s: %v is taken for an answer to a call that was never made", name, err)
		}
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Check(t, err)
	return key
}

// TestOIDCTokenIsReadAgain: the kubelet has replaced an expired token.
func TestOIDCTokenIsReadAgain(t *testing.T) {
	t.Parallel()
	c := newTrustedCloud(t)
	c.writeToken(func(r *jwt.RegisteredClaims) { r.ExpiresAt = jwt.NewNumericDate(time.Unix(1, 0)) })
	client := c.client(c.provider())
	if _, err := client.DescribeVSwitches(t.Context(), "vpc-emulator"); err == nil {
		t.Fatal("an expired token is accepted")
	}
	c.writeToken(nil)
	if _, err := client.DescribeVSwitches(t.Context(), "vpc-emulator"); err != nil {
		t.Errorf("with the new token: %v", err)
	}
}

func TestSTSRedirectIsThrottling(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed.Store(followed.Load() || r.URL.Path != "/")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	c := newTrustedCloud(t)
	provider := alicloud.NewOIDCCredentials(alicloud.OIDCOptions{
		RoleARN: roleARN, ProviderARN: providerARN, TokenFile: c.tokenFile, SessionName: "session",
		Endpoints: alicloud.Endpoints{STS: server.URL, PlainHTTP: true}, Transport: c.transport,
	})
	_, err := provider.Credentials(t.Context())
	var none *alicloud.CredentialsError
	if !errors.As(err, &none) || !none.IsTemporary() || followed.Load() {
		t.Errorf("error %v, followed %t: want a temporary error and no second request", err, followed.Load())
	}
}

// TestSecretsStayInside makes everything fail that handles keys and tokens, and looks for them in errors and log lines.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	logger := funcr.New(func(prefix, args string) { said.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 10})
	ctx := klog.NewContext(t.Context(), logger)
	c := newTrustedCloud(t)
	secrets := []string{"distinctive-secret", c.writeToken(nil)}
	note := func(err error) {
		if err != nil {
			said.WriteString(err.Error() + "\n")
		}
	}
	static := c.client(alicloud.StaticCredentials{AccessKeyID: "emulator", AccessKeySecret: "distinctive-secret",
		SecurityToken: "distinctive-secret"})
	wrongSecret := c.client(alicloud.StaticCredentials{AccessKeyID: "emulator", AccessKeySecret: "distinctive-secret"})
	session := c.client(c.provider())
	for _, rule := range []string{
		`{"action":"*","code":"InvalidSecurityToken.Expired","status":403}`, `{"action":"*","drop":"after"}`,
		`{"action":"*","code":"InternalError","status":500}`, `{"action":"DescribeVSwitches","code":"SignatureDoesNotMatch","status":400}`,
	} {
		c.emu.Fault(rule)
		for _, client := range []*alicloud.Client{static, wrongSecret, session} {
			_, err := client.DescribeVSwitches(ctx, "vpc-emulator")
			note(err)
		}
	}
	keys, err := c.provider().Credentials(ctx)
	testkit.Check(t, err)
	secrets = append(secrets, keys.AccessKeySecret, keys.SecurityToken)
	closed, cancel := context.WithCancel(ctx)
	cancel()
	for _, client := range []*alicloud.Client{static, wrongSecret, c.client(alicloud.StaticCredentials(keys))} {
		_, err := client.DescribeVSwitches(closed, "vpc-emulator")
		note(err)
	}
	if said.Len() == 0 {
		t.Fatal("nothing failed")
	}
	for _, secret := range secrets {
		if strings.Contains(said.String(), secret) {
			t.Errorf("a secret is shown in:\n%s", said.String())
		}
	}
}
