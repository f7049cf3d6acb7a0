package sts

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// provider is a registered OIDC provider with its parsed keys.
type provider struct {
	cloud.OIDCConfig
	keys []jwt.VerificationKey
}

func newProvider(c cloud.OIDCConfig) (*provider, error) {
	p := &provider{OIDCConfig: c}
	for i, text := range c.Keys {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, fmt.Errorf("keys[%d] is not in PEM form", i)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		p.keys = append(p.keys, key)
	}
	return p, nil
}

// claims reads a token. Without configured keys its signature is not checked; format and claims always are.
func (p *provider) claims(c *api.Call) (*jwt.RegisteredClaims, *api.Error) {
	parser := jwt.NewParser(jwt.WithoutClaimsValidation(),
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}))
	claims := &jwt.RegisteredClaims{}
	token := strings.TrimSpace(c.Str("OIDCToken"))
	var err error
	if len(p.keys) == 0 {
		_, _, err = parser.ParseUnverified(token, claims)
	} else {
		_, err = parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return jwt.VerificationKeySet{Keys: p.keys}, nil })
	}
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		return nil, refuse("AuthenticationFail.OIDCToken.InvalidSignature", "The signature of the OIDC token is not valid.")
	case err != nil, claims.Subject == "", claims.ExpiresAt == nil:
		return nil, refuse("AuthenticationFail.OIDCToken.Invalid", "The OIDC token is not valid.")
	case p.Issuer != "" && claims.Issuer != p.Issuer:
		return nil, refuse("AuthenticationFail.OIDCToken.Invalid", "The issuer of the OIDC token is not that of the provider.")
	case !slices.ContainsFunc(claims.Audience, func(a string) bool { return slices.Contains(p.ClientIDs, a) }):
		return nil, refuse("AuthenticationFail.OIDCToken.AudienceNotMatch", "No audience of the OIDC token is registered with the provider.")
	case !c.Host.Before(claims.ExpiresAt.Time): // the issuer is no part of the cloud
		return nil, refuse("AuthenticationFail.OIDCToken.Expired", "The OIDC token has expired.")
	}
	return claims, nil
}

func refuse(code, message string) *api.Error {
	return api.Errorf(http.StatusUnauthorized, code, "%s", message)
}

type tokenInfo struct { //nolint:revive // names on the wire
	Subject, Issuer, ClientIds                     string
	ExpirationTime, IssuanceTime, VerificationInfo string
}

func (s service) assumeRoleWithOIDC(c *api.Call) (any, error) {
	name, _ := strings.CutPrefix(c.Str("OIDCProviderArn"), s.arn("oidc-provider/"))
	p, ok := s.providers[name]
	if !ok {
		return nil, refuse("AuthenticationFail.NoPermission", "No such OIDC Provider registered.")
	}
	claims, bad := p.claims(c)
	if bad != nil {
		return nil, bad
	}
	role, bad := s.role(c.Str("RoleArn"))
	if bad != nil {
		return nil, bad
	}
	if !trusts(role, p.Name, claims.Subject) {
		return nil, refuse("AuthenticationFail.NoPermission", "There is no permission.")
	}
	assumed, err := s.assume(c, role)
	if err != nil {
		return nil, err
	}
	info := tokenInfo{
		Subject: claims.Subject, Issuer: claims.Issuer, ClientIds: strings.Join(claims.Audience, ","),
		ExpirationTime: cloud.Timestamp(claims.ExpiresAt.Time), VerificationInfo: "Success",
	}
	if claims.IssuedAt != nil {
		info.IssuanceTime = cloud.Timestamp(claims.IssuedAt.Time)
	}
	return struct {
		assumeAnswer
		OIDCTokenInfo tokenInfo
	}{assumed, info}, nil
}

// trusts reports whether a role's trust policy admits a subject of a provider.
func trusts(r cloud.RoleConfig, providerName, subject string) bool {
	return (len(r.OIDCProviders) == 0 || slices.Contains(r.OIDCProviders, providerName)) &&
		(len(r.Subjects) == 0 || slices.Contains(r.Subjects, subject))
}
