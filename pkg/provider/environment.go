package provider

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// Environment holds the settings that come from environment variables, by the names of the official CCM and of the vendor's
// own tools.
type Environment struct {
	// Keys are plain: ACCESS_KEY_ID and ACCESS_KEY_SECRET, else ALIBABA_CLOUD_ACCESS_KEY_ID,
	// ALIBABA_CLOUD_ACCESS_KEY_SECRET and, for temporary keys, ALIBABA_CLOUD_SECURITY_TOKEN.
	Keys EnvironmentKeys
	// Role is assumed with a service account token (RRSA).
	Role EnvironmentRole
	// CredentialsFile (ALIBABA_CLOUD_CREDENTIALS_FILE) is a file or directory with keys, Profile (ALIBABA_CLOUD_PROFILE) its
	// section, see [alicloud.NewFileCredentials].
	CredentialsFile, Profile string
	// RoleDisabled (ALIBABA_CLOUD_ECS_METADATA_DISABLED=true) keeps the RAM role of this instance from being used.
	RoleDisabled bool
	// Endpoints are SLB_ENDPOINT, NLB_ENDPOINT, VPC_ENDPOINT, ECS_ENDPOINT, QUOTAS_ENDPOINT, STS_ENDPOINT (or ALIBABA_CLOUD_STS_ENDPOINT) and
	// METADATA_ENDPOINT.
	Endpoints Endpoints
	// PlainHTTP (ALICLOUD_CLIENT_SCHEME=HTTP) sends calls unencrypted.
	PlainHTTP bool
	// BackendENI (SERVICE_FORCE_BACKEND_ENI=true) makes pod addresses the default backends.
	BackendENI bool
}

// EnvironmentKeys are keys with the names of the variables that hold them.
type EnvironmentKeys struct {
	ID, Secret, Token  string
	idName, secretName string
}

// EnvironmentRole is a role with what is needed to assume it. All are set, or none but SessionName.
type EnvironmentRole struct {
	// ARN is ALIBABA_CLOUD_ROLE_ARN, ProviderARN ALIBABA_CLOUD_OIDC_PROVIDER_ARN, TokenFile ALIBABA_CLOUD_OIDC_TOKEN_FILE.
	ARN, ProviderARN, TokenFile string
	// SessionName is ALIBABA_CLOUD_ROLE_SESSION_NAME. Default: [CredentialsOptions.SessionName].
	SessionName string
}

// Names of variables that errors point to.
const (
	envRoleARN     = "ALIBABA_CLOUD_ROLE_ARN"
	envProviderARN = "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"
	envTokenFile   = "ALIBABA_CLOUD_OIDC_TOKEN_FILE" //nolint:gosec // a name, not a token
	envSessionName = "ALIBABA_CLOUD_ROLE_SESSION_NAME"
	envFile        = "ALIBABA_CLOUD_CREDENTIALS_FILE"

	envRoleDisabled = "ALIBABA_CLOUD_ECS_METADATA_DISABLED"
	envScheme       = "ALICLOUD_CLIENT_SCHEME"
)

// EnvironmentFrom reads the environment through getenv, usually [os.Getenv].
func EnvironmentFrom(getenv func(string) string) Environment {
	return Environment{
		Keys: keysFrom(getenv),
		Role: EnvironmentRole{
			ARN: getenv(envRoleARN), ProviderARN: getenv(envProviderARN), TokenFile: getenv(envTokenFile), SessionName: getenv(envSessionName),
		},
		CredentialsFile: getenv(envFile),
		Profile:         getenv("ALIBABA_CLOUD_PROFILE"),
		RoleDisabled:    strings.EqualFold(getenv(envRoleDisabled), "true"),
		Endpoints: Endpoints{
			"slb": getenv("SLB_ENDPOINT"), "nlb": getenv("NLB_ENDPOINT"), "vpc": getenv("VPC_ENDPOINT"), "ecs": getenv("ECS_ENDPOINT"),
			"sts":      cmp.Or(getenv("STS_ENDPOINT"), getenv("ALIBABA_CLOUD_STS_ENDPOINT")),
			"quotas":   getenv("QUOTAS_ENDPOINT"),
			"metadata": getenv("METADATA_ENDPOINT"),
		},
		PlainHTTP:  getenv(envScheme) == "HTTP",
		BackendENI: getenv("SERVICE_FORCE_BACKEND_ENI") == "true",
	}
}

func keysFrom(getenv func(string) string) EnvironmentKeys {
	const officialID, officialSecret = "ACCESS_KEY_ID", "ACCESS_KEY_SECRET"
	const toolsPrefix = "ALIBABA_CLOUD_"
	if getenv(officialID)+getenv(officialSecret) != "" {
		return EnvironmentKeys{ID: getenv(officialID), Secret: getenv(officialSecret), idName: officialID, secretName: officialSecret}
	}
	return EnvironmentKeys{
		ID: getenv(toolsPrefix + officialID), Secret: getenv(toolsPrefix + officialSecret), Token: getenv(toolsPrefix + "SECURITY_TOKEN"),
		idName: toolsPrefix + officialID, secretName: toolsPrefix + officialSecret,
	}
}

// maxSessionName is the longest session name that every version of the documentation accepts.
const maxSessionName = 32

// Check returns what is wrong with the variables, all of it in one line.
func (e Environment) Check() error {
	var problems problemList
	if (e.Keys.ID == "") != (e.Keys.Secret == "") {
		problems.addf("environment %s, %s: only one is set, accepted: both or neither", e.Keys.idName, e.Keys.secretName)
	}
	set := 0
	for _, value := range []string{e.Role.ARN, e.Role.ProviderARN, e.Role.TokenFile} {
		if value != "" {
			set++
		}
	}
	if set == 1 || set == 2 {
		problems.addf("environment %s=%q, %s=%q, %s=%q: not all are set, accepted: all three or none",
			envRoleARN, e.Role.ARN, envProviderARN, e.Role.ProviderARN, envTokenFile, e.Role.TokenFile)
	}
	problems.checkARN(envRoleARN, e.Role.ARN, "role/")
	problems.checkARN(envProviderARN, e.Role.ProviderARN, "oidc-provider/")
	if name := e.Role.SessionName; name != "" &&
		(len(name) < 2 || len(name) > maxSessionName || strings.ContainsFunc(name, notInSessionName)) {
		problems.addf("environment %s: %q, accepted: 2 to %d letters, digits and .@_-", envSessionName, name, maxSessionName)
	}
	return initor.OneLine(problems.err(), e.Endpoints.check("environment %s_ENDPOINT", strings.ToUpper))
}

func (p *problemList) checkARN(name, arn, kind string) {
	if arn == "" {
		return
	}
	account, resource, _ := strings.Cut(strings.TrimPrefix(arn, "acs:ram::"), ":")
	if !strings.HasPrefix(arn, "acs:ram::") || account == "" || !strings.HasPrefix(resource, kind) || resource == kind {
		p.addf("environment %s: %q, accepted: \"acs:ram::<account>:%s<name>\"", name, arn, kind)
	}
}

func notInSessionName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".@_-", r)
}

// configured reports whether a role is to be assumed.
func (r EnvironmentRole) configured() bool {
	return r.ARN != "" && r.ProviderARN != "" && r.TokenFile != ""
}

// source names the variables for errors.
func (k EnvironmentKeys) source() string {
	return fmt.Sprintf("environment %s, %s", k.idName, k.secretName)
}
