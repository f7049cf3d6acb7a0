package sts_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/sts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// The parts of stories.
const (
	account = "acs:ram::1234567890123456:"
	assume  = "AssumeRole RoleSessionName=session RoleArn=" + account + "role/"
	oidc    = "AssumeRoleWithOIDC RoleSessionName=session RoleArn=" + account + "role/node OIDCProviderArn=" + account +
		"oidc-provider/cluster OIDCToken="
)

// product has the role node, which only pods of Service account ccm may assume with a token, for at most half an hour, and the role any.
func product(t *testing.T) func(*cloud.Store) api.Product {
	t.Helper()
	der := testkit.Must(x509.MarshalPKIXPublicKey(&newKey(t).PublicKey))(t)
	stranger := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return func(s *cloud.Store) api.Product {
		p, err := sts.Product(sts.Options{
			AccountID: s.AccountID, Roles: []cloud.RoleConfig{{Name: "node", MaxSession: 1800, OIDCProviders: []string{"cluster", "signed"},
				Subjects: []string{"ccm"}}, {Name: "any"}},
			Providers: []cloud.OIDCConfig{
				{Name: "cluster", Issuer: "https://cluster", ClientIDs: []string{"sts"}}, {Name: "signed", ClientIDs: []string{"sts"},
					Keys: []string{stranger}},
				{Name: "other", ClientIDs: []string{"sts"}},
			},
			Issue: func(_ cloud.RoleConfig, _ string, now time.Time, life time.Duration) sts.Credentials {
				return sts.Credentials{AccessKeyID: "STS.1", Expiration: now.Add(life)}
			},
			Principal: func(id string) string { return "user/" + id },
		})
		if err != nil {
			t.Error(err)
		}
		return p
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// token makes a token of Service account ccm, changed. A key that nobody knows has signed it.
func token(t *testing.T, change func(*jwt.RegisteredClaims)) string {
	t.Helper()
	claims := &jwt.RegisteredClaims{Issuer: "https://cluster", Subject: "ccm", Audience: jwt.ClaimStrings{"sts"},
		ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}
	change(claims)
	return testkit.Must(jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(newKey(t)))(t)
}

// TestRefusals: what the emulated STS refuses, and with which code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	story := emulatortest.Story
	plain := token(t, func(*jwt.RegisteredClaims) {})
	of := func(change func(*jwt.RegisteredClaims)) string { return oidc + token(t, change) }
	by := func(provider string) string {
		return "AssumeRoleWithOIDC RoleSessionName=session RoleArn=" + account + "role/node OIDCProviderArn=" + account + "oidc-provider/" +
			provider + " OIDCToken=" + plain
	}
	emulatortest.CheckRefusals(t, emulatortest.Products{product(t)}, nil,
		story("a role", assume+"any", ""),
		story("a role that is not there", assume+"nobody", "EntityNotExist.Role"),
		story("a session without a name", "AssumeRole RoleArn="+account+"role/any", "MissingParameter"),
		story("a session with a name of one letter", "AssumeRole RoleSessionName=s RoleArn="+account+"role/any",
			"InvalidParameter.RoleSessionName"),
		story("a session with a slash in its name", "AssumeRole RoleSessionName=a/b RoleArn="+account+"role/any",
			"InvalidParameter.RoleSessionName"),
		story("the longest session", assume+"node DurationSeconds=1800", ""),
		story("a session that is too long", assume+"node DurationSeconds=1801", "InvalidParameter.DurationSeconds"),
		story("a session that is too short", assume+"node DurationSeconds=899", "InvalidParameter.DurationSeconds"),
		story("a token", oidc+plain, ""),
		story("a token of a provider that is not there", by("nobody"), "AuthenticationFail.NoPermission"),
		story("a token of a provider that the role does not trust", by("other"), "AuthenticationFail.NoPermission"),
		story("a token that another key has signed", by("signed"), "AuthenticationFail.OIDCToken.InvalidSignature"),
		story("a token of another Service account", of(func(c *jwt.RegisteredClaims) { c.Subject = "web" }), "AuthenticationFail.NoPermission"),
		story("a token that is none", oidc+"none", "AuthenticationFail.OIDCToken.Invalid"),
		story("a token of another issuer", of(func(c *jwt.RegisteredClaims) { c.Issuer = "https://other" }),
			"AuthenticationFail.OIDCToken.Invalid"),
		story("a token without an end", of(func(c *jwt.RegisteredClaims) { c.ExpiresAt = nil }), "AuthenticationFail.OIDCToken.Invalid"),
		story("a token for somebody else", of(func(c *jwt.RegisteredClaims) { c.Audience = jwt.ClaimStrings{"kubernetes"} }),
			"AuthenticationFail.OIDCToken.AudienceNotMatch"),
		story("a token that has expired", "wait 1h\n"+oidc+plain, "AuthenticationFail.OIDCToken.Expired"),
		story("who is it", "GetCallerIdentity", ""),
	)
}

// TestProvidersNeedKeysThatCanBeRead: a misspelled key of the configuration is an error, and no provider that trusts every token.
func TestProvidersNeedKeysThatCanBeRead(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"no PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := sts.Product(sts.Options{Providers: []cloud.OIDCConfig{{Name: "cluster", Keys: []string{key}}}}); err == nil {
			t.Errorf("key %q is taken", key)
		}
	}
}
