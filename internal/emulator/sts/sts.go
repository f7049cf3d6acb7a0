// Package sts carries out the actions of the Security Token Service: temporary keys for roles.
//
// It decides who may assume what; issuing and remembering keys is the business of the account's key ring.
package sts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Credentials are a temporary key.
type Credentials struct {
	AccessKeyID, AccessKeySecret, SecurityToken string
	Expiration                                  time.Time
}

// Options configure the service.
type Options struct {
	AccountID string
	Roles     []cloud.RoleConfig
	Providers []cloud.OIDCConfig
	// Issue makes a temporary key for a role.
	Issue func(role cloud.RoleConfig, session string, now time.Time, life time.Duration) Credentials
	// Principal names who a key speaks for: user/<key id> or assumed-role/<role>/<session>.
	Principal func(keyID string) string
}

type service struct {
	Options
	providers map[string]*provider
}

// Product returns the actions of STS. Keys that cannot be read are an error.
func Product(o Options) (api.Product, error) {
	s := service{Options: o, providers: map[string]*provider{}}
	for _, c := range o.Providers {
		p, err := newProvider(c)
		if err != nil {
			return api.Product{}, fmt.Errorf("OIDC provider %s: %w", c.Name, err)
		}
		s.providers[c.Name] = p
	}
	common := []api.Param{
		api.Str("RoleArn", api.Required), api.Str("RoleSessionName", api.Required),
		api.Num("DurationSeconds", 0, 0), api.Str("Policy", api.Len(1, 2048)),
	}
	return api.Product{Name: "sts", Version: api.VersionSTS, Actions: []api.Action{
		{Name: "AssumeRole", Kind: api.Read, Params: append(common, api.Str("ExternalId", api.Len(2, 1224))), Run: s.assumeRole},
		{Name: "AssumeRoleWithOIDC", Kind: api.Read, Unsigned: true, Params: append(slices.Clone(common),
			api.Str("OIDCProviderArn", api.Required), api.Str("OIDCToken", api.Required, api.Len(4, 20000))), Run: s.assumeRoleWithOIDC},
		{Name: "GetCallerIdentity", Kind: api.Read, Unrestricted: true, Run: s.getCallerIdentity},
	}}, nil
}

// credentialsView and assumedView are answers; their field names are the wire's.
type credentialsView struct{ AccessKeyId, AccessKeySecret, SecurityToken, Expiration string } //nolint:revive // names on the wire

type assumedView struct{ Arn, AssumedRoleId string } //nolint:revive // names on the wire

type assumeAnswer struct {
	Credentials     credentialsView
	AssumedRoleUser assumedView
}

func (s service) assumeRole(c *api.Call) (any, error) {
	role, bad := s.role(c.Str("RoleArn"))
	if bad != nil {
		return nil, bad
	}
	return s.assume(c, role)
}

// assume issues a key for a role that the caller was found to be entitled to.
func (s service) assume(c *api.Call, role cloud.RoleConfig) (assumeAnswer, error) {
	session := c.Str("RoleSessionName")
	if len(session) < 2 || len(session) > 64 || strings.IndexFunc(session, notInSession) >= 0 {
		return assumeAnswer{}, api.BadRequest("InvalidParameter.RoleSessionName", "The session name is not 2-64 letters, digits and .@_-.")
	}
	longest := maxSession(role)
	seconds := c.Int("DurationSeconds", min(defaultSession, longest))
	if seconds < minSession || seconds > longest {
		return assumeAnswer{},
			api.BadRequest("InvalidParameter.DurationSeconds", "The duration %d is outside %d-%d.", seconds, minSession, longest)
	}
	k := s.Issue(role, session, c.Now, time.Duration(seconds)*time.Second)
	return assumeAnswer{
		Credentials: credentialsView{k.AccessKeyID, k.AccessKeySecret, k.SecurityToken, cloud.Timestamp(k.Expiration)},
		AssumedRoleUser: assumedView{
			s.arn("assumed-role/" + role.Name + "/" + session), "3000000000000000:" + session,
		},
	}, nil
}

// Lengths of a session in seconds.
const (
	minSession     = 900
	defaultSession = 3600
)

func maxSession(r cloud.RoleConfig) int {
	if r.MaxSession > 0 {
		return r.MaxSession
	}
	return defaultSession
}

func notInSession(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".@_-", r)
}

func (s service) arn(resource string) string { return "acs:ram::" + s.AccountID + ":" + resource }

// role finds the role of acs:ram::<account>:role/<name>.
func (s service) role(arn string) (cloud.RoleConfig, *api.Error) {
	for _, r := range s.Roles {
		if s.arn("role/"+r.Name) == arn {
			return r, nil
		}
	}
	return cloud.RoleConfig{}, api.NotFound("EntityNotExist.Role", "The role %s does not exist.", arn)
}

func (s service) getCallerIdentity(c *api.Call) (any, error) {
	principal := s.Principal(c.AccessKeyID)
	kind := "RAMUser"
	if strings.HasPrefix(principal, "assumed-role/") {
		kind = "AssumedRoleUser"
	}
	return struct{ IdentityType, AccountId, PrincipalId, UserId, Arn string }{ //nolint:revive // names on the wire
		kind, s.AccountID, principal, c.AccessKeyID, s.arn(principal),
	}, nil
}
